import type { KeyRecord } from "../keys/key-file.ts";
import type { Caller, Connection } from "./client-address.ts";

/** What the server hands to the app with each request. */
export interface Bindings {
  readonly connection: Connection;
  /** Keeps the connection open for a handler that may stay silent for so many seconds. */
  readonly allowSeconds: (seconds: number) => void;
  /** Whether the client is asked to come back on a new connection. */
  readonly draining: boolean;
  /** Whether the request's target is not absolute, so that its path cannot be trusted. */
  readonly malformedTarget?: boolean;
}

/** What the edge has found out about a request before a route sees it. */
export interface Facts {
  readonly requestId: string;
  readonly caller: Caller;
  /** The valid key that came with the request, or null. */
  readonly key: KeyRecord | null;
  /** Headers of the answer, whatever it says. */
  readonly headers: Readonly<Record<string, string>>;
}

interface Variables {
  facts: Facts;
}

/** The types of a Hono context in this app. */
export interface AppEnv {
  Bindings: Bindings;
  Variables: Variables;
}
