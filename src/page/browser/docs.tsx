import { render } from "hono/jsx/dom";
import { askInterface, type Interface } from "./api.ts";
import { queryOf } from "./bookmark.ts";
import { Fields, Prose, typeOf } from "./docs-schema.tsx";
import type { Schemas } from "./schema-check.ts";
import { Shell } from "./shell.tsx";

type Operation = Interface["paths"][string]["get"];

/** The interface document for reading. */
function Docs({ info, paths, components }: Interface) {
  const operations = Object.entries(paths);
  return (
    <>
      <header class="top cluster">
        <a class="brand" href="./">
          sixscope
        </a>
        <a class="aside" href="api/v1/openapi.json">
          OpenAPI document
        </a>
      </header>
      <main class="docs">
        <nav class="contents" aria-label="Endpoints">
          <ul>
            {operations.map(([path, { get }]) => (
              <li>
                <a class="mono" href={`docs#${get.operationId}`}>
                  {path}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <div>
          <h1>
            sixscope API <span class="tag">{info.version}</span>
          </h1>
          <Prose text={info.description} />
          {operations.map(([path, { get }]) => (
            <Endpoint {...get} path={path} schemas={components.schemas} />
          ))}
        </div>
      </main>
    </>
  );
}

function Endpoint(props: Operation & { path: string; schemas: Schemas }) {
  const { path, schemas, operationId, summary, parameters, responses, security } = props;
  // An empty object among the schemes means that a call needs none.
  const needsKey = security.every((scheme) => Object.keys(scheme).length > 0);
  return (
    <section class="endpoint" id={operationId} aria-labelledby={`${operationId}-title`}>
      <h2 id={`${operationId}-title`}>
        <span class="mono">GET {path}</span>
        {needsKey && <span class="tag">needs a key</span>}
      </h2>
      <p>{summary}</p>
      <Prose text={props.description} />
      {parameters.length > 0 && (
        <>
          <h3>Parameters</h3>
          <dl class="facts">
            {parameters.map((parameter) => (
              <div>
                <dt class="mono">{parameter.name}</dt>
                <dd>
                  <Prose text={parameter.description} />
                  <p class="soft">{aboutParameter(parameter)}</p>
                </dd>
              </div>
            ))}
          </dl>
        </>
      )}
      <h3>From a shell</h3>
      <Shell path={exampleOf(path, parameters)} needsKey={needsKey} />
      <h3>Answers</h3>
      <dl class="facts">
        {Object.entries(responses).map(([status, { description, content }]) => (
          <div>
            <dt>{status}</dt>
            <dd>
              <Prose text={description} />
              <details>
                <summary>Fields</summary>
                <Fields schema={content["application/json"].schema} schemas={schemas} />
              </details>
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function aboutParameter({ required, schema }: Operation["parameters"][number]): string {
  const preset = "default" in schema ? `default ${schema.default}` : null;
  return [required ? "needed" : null, typeOf(schema), preset].filter(Boolean).join(", ");
}

/** The call with the examples of the parameters that it needs. */
function exampleOf(path: string, parameters: Operation["parameters"]): string {
  const query: Record<string, string> = {};
  let filled = path.slice(1);
  for (const { name, example, required, in: place } of parameters) {
    if (required && place === "query") query[name] = `${example}`;
    if (required) filled = filled.replace(`{${name}}`, `${example}`);
  }
  return filled + queryOf(query);
}

void askInterface().then((described) => {
  render(<Docs {...described} />, document.body);
  // The browser has looked for the section before it was there.
  document.getElementById(location.hash.slice(1))?.scrollIntoView();
});
