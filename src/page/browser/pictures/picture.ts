import type { Child } from "hono/jsx/dom";

/** The question that a document answers. */
export interface Asked<Document = object> {
  /** The documents that are shown side by side, on one scale. */
  readonly all: readonly Document[];
  /** The events of the document's run; none if it came with a link or a file. */
  readonly parts: readonly object[];
  readonly isRunning: boolean;
  /** True if the way is shown elsewhere, above those of other places. */
  readonly isBeside?: boolean;
  /** The values of all options, also of those that have their default. */
  readonly values: Readonly<Record<string, string>>;
  /** A link to the answer that is shown. */
  linkToAnswer(): Promise<string>;
  /** The URL of the same question with other values. */
  linkTo(values: Readonly<Record<string, string>>): string;
}

/** The pictures that the page adds to a tool's report, and how it shows them. */
export interface View<Document = never> {
  /** A picture above everything else. */
  figure?(document: Document, asked: Asked<Document>): Child;
  /** The way to the target from one of several places, which are shown below each other. */
  way?(document: Document, asked: Asked<Document>, place: string): Child;
  /** What to do about the answer, above the ways of several places. */
  advice?(document: Document, asked: Asked<Document>): Child;
  /** A picture of all places. */
  overPlaces?(places: readonly { location: string; document: Document }[]): Child;
  /** Shown instead of the tables; null to show the tables. */
  insteadOfTables?(document: Document, asked: Asked<Document>): Child;
  /** What opens on demand, below the rest. */
  more?(document: Document, asked: Asked<Document>): Child;
  /** True if the picture says what the facts of the report say. */
  readonly hasOwnFacts?: boolean;
  /** True if the picture of all places says what the table that compares them does; each place by itself is folded. */
  readonly hasOwnComparison?: boolean;
  /** What opens the tables, if they are folded. */
  readonly folded?: string;
  /** How many rows a table shows, which are the last ones. */
  readonly maxRows?: number;
  /** A button for a run that asks again and again, each time with these values. */
  readonly repeat?: {
    readonly label: string;
    readonly values: Readonly<Record<string, string>>;
    readonly everyMs: number;
  };
}
