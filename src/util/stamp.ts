import { VERSION } from "./version.ts";

/** The details that date a document: the start of its measurement, and the version of sixscope. */
export const newStamp = () => ({ startedAt: new Date().toISOString(), version: VERSION });
