import type { Child } from "hono/jsx/dom";

/** The question that a document answers. */
export interface Asked<Document = object> {
  /** The documents that are shown side by side, on one scale. */
  readonly all: readonly Document[];
  /** The events of the document's run; none if it came with a link or a file. */
  readonly parts: readonly object[];
  readonly isRunning: boolean;
  /** True if the way is shown elsewhere, above the ways of other places. */
  readonly isBeside?: boolean;
  /** The values of all options, defaults too. */
  readonly values: Readonly<Record<string, string>>;
  /** A link to the shown answer. */
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
  /** The advice, above the ways of several places. */
  advice?(document: Document, asked: Asked<Document>): Child;
  /** A picture of all places. */
  overPlaces?(places: readonly { location: string; document: Document }[]): Child;
  /** Shown instead of the tables; null to show the tables. */
  insteadOfTables?(document: Document, asked: Asked<Document>): Child;
  /** Parts that open on demand, below the rest. */
  more?(document: Document, asked: Asked<Document>): Child;
  /** True if the picture shows the facts of the report. */
  readonly hasOwnFacts?: boolean;
  /** True if the picture of all places replaces the table that compares them; each place by itself is folded. */
  readonly hasOwnComparison?: boolean;
  /** The label that opens the tables, if they are folded. */
  readonly folded?: string;
  /** The number of last rows that a table shows. */
  readonly maxRows?: number;
  /** A button for a run that asks again and again, each time with these values. */
  readonly repeat?: {
    readonly label: string;
    readonly values: Readonly<Record<string, string>>;
    readonly everyMs: number;
  };
}
