import { render, useEffect, useState } from "hono/jsx/dom";
import { CallError, call } from "./api.ts";
import { Prose, SchemaFields, typeOf } from "./docs-schema.tsx";
import { TryForm } from "./docs-try.tsx";
import { reloadOnChange } from "./reload.ts";
import { noteLimit } from "./state.ts";
import { TEXTS } from "./texts.ts";
import type { Interface, Operation } from "./types.ts";

const T = TEXTS.docs;

/** The interface document for reading, with a form to try each call. */
function Docs() {
  const [document, setDocument] = useState<Interface | null>(null);
  const [failure, setFailure] = useState<string | null>(null);
  useEffect(() => {
    call("openapi.json", new AbortController().signal, noteLimit).then(
      (answer) => setDocument(answer as Interface),
      (error) => setFailure(error instanceof CallError ? error.message : String(error)),
    );
  }, []);
  return (
    <>
      <header class="top">
        <a class="brand" href="./">
          {TEXTS.title}
        </a>
        <nav aria-label={TEXTS.toolsLabel}>
          <a href="./">{T.toPage}</a>
          <a href="docs" aria-current="page">
            {T.link}
          </a>
        </nav>
        <a class="aside" href="api/v1/openapi.json">
          {T.document}
        </a>
      </header>
      <main>
        {document === null ? (
          <>
            <h1>{T.title}</h1>
            <p class={failure ? "problem" : "waiting"}>{failure ?? T.loading}</p>
          </>
        ) : (
          <Contents document={document} />
        )}
      </main>
    </>
  );
}

function Contents({ document }: { document: Interface }) {
  const { info, paths } = document;
  useEffect(() => {
    // The browser has looked for it before it was there.
    globalThis.document.getElementById(location.hash.slice(1))?.scrollIntoView();
  }, []);
  const operations = Object.entries(paths).map(([path, { get }]) => [path, get] as const);
  return (
    <div class="docs">
      <nav class="contents" aria-label={T.endpoints}>
        <ul>
          {operations.map(([path, { operationId }]) => (
            <li>
              <a class="mono" href={`docs#${operationId}`}>
                {path}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <div>
        <h1>
          {info.title} {T.title} <span class="tag">{info.version}</span>
        </h1>
        <Prose text={info.description} />
        {operations.map(([path, operation]) => (
          <Endpoint path={path} operation={operation} document={document} />
        ))}
      </div>
    </div>
  );
}

function Endpoint(props: { path: string; operation: Operation; document: Interface }) {
  const { path, operation, document } = props;
  const { operationId, summary, description, parameters, responses, security } = operation;
  // An empty object among the schemes means that a call needs none.
  const needsKey = security.every((scheme) => Object.keys(scheme).length > 0);
  return (
    <section class="endpoint" id={operationId} aria-labelledby={`${operationId}-title`}>
      <h2 id={`${operationId}-title`}>
        <span class="mono">GET {path}</span>
        {needsKey && <span class="tag">{T.needsKey}</span>}
      </h2>
      <p>{summary}</p>
      <Prose text={description} />
      {parameters.length > 0 && (
        <>
          <h3>{T.parameters}</h3>
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
      <h3>{T.try}</h3>
      <TryForm path={path} operation={operation} needsKey={needsKey} />
      <h3>{T.answers}</h3>
      {Object.entries(responses).map(([status, response]) => (
        <details>
          <summary>
            <strong>{status}</strong> {titleOf(response.description)}
          </summary>
          <Prose text={response.description} />
          <SchemaFields schema={response.content["application/json"].schema} document={document} />
        </details>
      ))}
    </section>
  );
}

function aboutParameter({ required, schema }: Operation["parameters"][number]): string {
  const preset = "default" in schema ? T.byDefault(String(schema.default)) : null;
  return [required ? T.needed : null, typeOf(schema), preset].filter(Boolean).join(", ");
}

/** The codes of errors that share a status, or what a success is. */
function titleOf(description: string): string {
  const codes = [...description.matchAll(/`([A-Z][A-Z0-9_]+)`:/g)].map(([, code]) => code);
  return codes.length > 0 ? codes.join(", ") : description;
}

const page = document.getElementById("page");
if (page !== null) {
  page.replaceChildren();
  reloadOnChange();
  render(<Docs />, page);
}
