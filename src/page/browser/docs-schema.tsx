import { TEXTS } from "./texts.ts";
import type { Interface } from "./types.ts";

const T = TEXTS.docs;

/** A JSON Schema as far as the interface document uses it. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly minimum?: number;
  readonly maximum?: number;
}

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
export function typeOf(schema: object): string {
  const {
    $ref,
    type,
    format,
    enum: values,
    const: only,
    items,
    minimum,
    maximum,
  } = schema as Schema;
  if ($ref !== undefined) return nameOf($ref);
  if (only !== undefined) return JSON.stringify(only);
  if (values !== undefined) return T.of(values.join(", "));
  if (items !== undefined) return T.listOf(typeOf(items));
  const { oneOf, anyOf } = schema as Schema;
  const choices = oneOf ?? anyOf;
  if (choices !== undefined && type === undefined) return choices.map(typeOf).join(` ${T.or} `);
  const range = minimum !== undefined && maximum !== undefined ? ` ${minimum}–${maximum}` : "";
  return `${[type].flat().join(` ${T.or} `)}${range}${format ? ` (${format})` : ""}`;
}

/** The fields of a value, each with those that are in it. */
export function SchemaFields({ schema, document }: { schema: object; document: Interface }) {
  const whole = resolve(schema as Schema, document);
  const choices = whole.oneOf ?? whole.anyOf;
  if (choices !== undefined && whole.properties === undefined) {
    return (
      <ul class="schema">
        {choices.map((choice) => (
          <li>
            <Nested name={typeOf(choice)} schema={choice} document={document} />
          </li>
        ))}
      </ul>
    );
  }
  return (
    <ul class="schema">
      {Object.entries(whole.properties ?? {}).map(([name, field]) => (
        <li>
          <Nested name={name} schema={field} document={document} />
        </li>
      ))}
    </ul>
  );
}

function Nested(props: { name: string; schema: Schema; document: Interface }) {
  const { name, schema, document } = props;
  const inner = resolve(schema.items ?? schema, document);
  const about = schema.description ?? inner.description;
  const line = (
    <>
      <span class="mono">{name}</span>{" "}
      <span class="soft">{name === typeOf(schema) ? "" : typeOf(schema)}</span>{" "}
      {about?.replaceAll("`", "")}
    </>
  );
  const hasFields = inner.properties !== undefined || inner.oneOf !== undefined;
  return hasFields ? (
    <details>
      <summary>{line}</summary>
      <SchemaFields schema={inner} document={document} />
    </details>
  ) : (
    <span>{line}</span>
  );
}

function nameOf(reference: string): string {
  return reference.split("/").at(-1) ?? reference;
}

function resolve(schema: Schema, { components }: Interface): Schema {
  if (schema.$ref === undefined) return schema;
  const schemas: Readonly<Record<string, object | undefined>> = components.schemas;
  return (schemas[nameOf(schema.$ref)] ?? {}) as Schema;
}
