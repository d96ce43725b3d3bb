import { VERSION } from "./version.ts";

/** The details that date a document: when its measurement started, and which version of sixscope measured. */
export const newStamp = () => ({ startedAt: new Date().toISOString(), version: VERSION });
