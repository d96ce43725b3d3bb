import { urlOf } from "./api.ts";
import { Copy } from "./pictures/parts.tsx";

/** A call of the API. */
export interface ShellProps {
  /** The call, below the base path of the API. */
  path: string;
  needsKey: boolean;
}

/** The line that calls the API from a shell. */
export function Shell({ path, needsKey }: ShellProps) {
  const key = needsKey ? `-H "X-API-Key: $SIXSCOPE_KEY" ` : "";
  const command = `curl ${key}'${urlOf(path)}'`;
  return (
    <p class="shell">
      <code>{command}</code> <Copy text={() => command} subject={`curl: ${path}`} />
    </p>
  );
}
