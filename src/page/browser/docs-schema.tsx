import type { JsonSchema } from "../../api/openapi.ts";
import { nameOf, type Schemas } from "./schema-check.ts";

/** Paragraphs with code in backquotes. */
export function Prose({ text }: { text: string }) {
  return (
    <>
      {text.split("\n\n").map((paragraph) => (
        <p class="prose">
          {paragraph
            .split("`")
            .map((piece, index) => (index % 2 === 1 ? <code>{piece}</code> : piece))}
        </p>
      ))}
    </>
  );
}

/** The type of a value in words. */
export function typeOf(schema: JsonSchema): string {
  const { $ref, type, format, items, minimum, maximum } = schema;
  if ($ref !== undefined) return nameOf($ref);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return `one of ${schema.enum.join(", ")}`;
  if (items !== undefined) return `list of ${typeOf(items as JsonSchema)}`;
  const choices = choicesOf(schema);
  if (choices && type === undefined) return choices.map(typeOf).join(" or ");
  const range = minimum !== undefined && maximum !== undefined ? ` ${minimum}–${maximum}` : "";
  return `${[type].flat().join(" or ")}${range}${format ? ` (${format})` : ""}`;
}

/** The fields of a value, or the values that it can be, each with the fields in it. */
export function Fields({ schema, schemas }: { schema: JsonSchema; schemas: Schemas }) {
  const resolve = (each: JsonSchema) =>
    each.$ref === undefined ? each : (schemas[nameOf(each.$ref)] ?? {});
  const whole = resolve(schema);
  const choices = (choicesOf(whole) ?? []).map((choice) => [typeOf(choice), choice] as const);
  const fields = whole.properties ? Object.entries(whole.properties as Schemas) : choices;
  return (
    <ul class="schema">
      {fields.map(([name, field]) => {
        const inner = resolve((field.items ?? field) as JsonSchema);
        const type = typeOf(field);
        const line = (
          <>
            <span class="mono">{name}</span> <span class="soft">{name === type ? "" : type}</span>{" "}
            {(field.description ?? inner.description)?.replaceAll("`", "")}
          </>
        );
        if (!inner.properties && !inner.oneOf) return <li>{line}</li>;
        return (
          <li>
            <details>
              <summary>{line}</summary>
              <Fields schema={inner} schemas={schemas} />
            </details>
          </li>
        );
      })}
    </ul>
  );
}

const choicesOf = ({ oneOf, anyOf }: JsonSchema) => oneOf ?? anyOf;
