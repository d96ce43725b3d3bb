import type { Child } from "hono/jsx/dom";

/** The question that a document answers. */
export interface Asked<Document = object> {
  /** The documents that are shown side by side, on one scale. */
  readonly all: readonly Document[];
  /** The values of all options, also of those that have their default. */
  readonly values: Readonly<Record<string, string>>;
  /** The URL of the same question with other values. */
  linkTo(values: Readonly<Record<string, string>>): string;
}

/** A picture for each row of a table, in a column of their own. */
export interface Pictures {
  readonly heading: string;
  readonly rows: readonly Child[];
}

/** The pictures that the page adds to a tool's report, and how it shows them. */
export interface View<Document = never> {
  /** A picture above everything else. */
  figure?(document: Document, asked: Asked<Document>): Child;
  /** Pictures beside the first table. */
  beside?(document: Document, asked: Asked<Document>): Pictures;
  /** Shown instead of the tables; null to show the tables. */
  insteadOfTables?(document: Document, asked: Asked<Document>): Child;
  /** How many rows a table shows, which are the last ones. */
  readonly maxRows?: number;
  /** A button for a run that asks again and again, each time with these values. */
  readonly repeat?: {
    readonly label: string;
    readonly values: Readonly<Record<string, string>>;
    readonly everyMs: number;
  };
}
