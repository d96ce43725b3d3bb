import type { RecordType } from "../message/record.ts";

/*
 * Names in this folder are presentation text in lower case with the final dot, in which two names are
 * equal exactly when they are equal as RFC 4343 compares them.
 */

/** The name and type that the records of a set share. */
export interface NameAndType {
  readonly name: string;
  readonly type: RecordType;
}

/** The labels of a name from the left; none for the root. */
export function labelsOf(name: string): readonly string[] {
  return name.match(/(?:\\.|[^.\\])+/g) ?? [];
}

/** The last labels of a name, as a name of its own. */
export function ancestorOf(name: string, labelCount: number): string {
  const labels = labelsOf(name);
  return `${labels.slice(labels.length - labelCount).join(".")}.`;
}

/** The name without its first label; the root's is the root. */
export function parentOf(name: string): string {
  return ancestorOf(name, Math.max(0, labelsOf(name).length - 1));
}

/** True if a name is the zone's, or below it. */
export function isWithin(name: string, zone: string): boolean {
  return name.endsWith(zone) && commonLabels(name, zone) === labelsOf(zone).length;
}

/** The number of labels that two names have in common, from the right. */
export function commonLabels(a: string, b: string): number {
  const [left, right] = [labelsOf(a).toReversed(), labelsOf(b).toReversed()];
  const different = left.findIndex((label, at) => label !== right[at]);
  return different < 0 ? left.length : different;
}

/** A text that sorts as a name does in canonical order; RFC 4034 section 6.1. */
export function sortKey(name: string): string {
  // Each byte is a character above the separator.
  const sortable = (label: string) =>
    label.replaceAll(/\\(\d{3})|\\?(.)/g, (_, digits, character) =>
      String.fromCharCode(1 + Number(digits ?? character.charCodeAt(0))),
    );
  return labelsOf(name).map(sortable).reverse().join("\0");
}

/** The wildcard right below a name. */
export function wildcardOf(name: string): string {
  return name === "." ? "*." : `*.${name}`;
}
