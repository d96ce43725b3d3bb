/** Comments, messages and documentation are in plain English. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";

const ROOT = join(import.meta.dir, "..");

const CODE = "{src,scripts,test}/**/*.{ts,tsx,lua,bash,fish,zsh}";
const PROSE = ["{README,CONTRIBUTING,SECURITY}.md", "docs/*.md"];

/** The beginning of a comment that names no subject; such a docstring reads "The outcome" or "True if". */
const BEGINNING = /(?:\/\*\*?\s*(?:\* )?|^\s*\* |\/\/ *)(?:What|Who|Whether)\b/gm;

/** Phrases that plain English says with fewer or more common words. */
const PHRASES = [
  "so many",
  "(?:an|each|every|one|per|the) ask",
  "hears? of",
  "tells? of",
  "ended at the most hops",
  "is no loss",
  "sent what is not an answer",
  "shall",
  "stands",
  "for it has",
  "of which",
  "whom",
  "thereby",
  // RFC 4443 section 2.4 (f): a router rate-limits them.
  "(?<!rate-)limits? (?:its|their) errors",
];

/** A phrase may go on in the next line of a comment. */
const PHRASE = new RegExp(`\\b(?:${PHRASES.join("|").replaceAll(" ", "[\\s*/]+")})\\b`, "gi");

/** The matches in a file, as `file:line: match`. */
function findings(file: string, pattern: RegExp): string[] {
  const text = readFileSync(join(ROOT, file), "utf8");
  return [...text.matchAll(pattern)].map((match) => {
    const start = match.index + match[0].search(/\S/);
    return `${file}:${text.slice(0, start).split("\n").length}: ${match[0].trim()}`;
  });
}

const filesOf = (pattern: string) =>
  [...new Glob(pattern).scanSync(ROOT)].filter((file) => join(ROOT, file) !== import.meta.path);

test("no comment begins with What, Who or Whether", () => {
  expect(filesOf(CODE).flatMap((file) => findings(file, BEGINNING))).toEqual([]);
});

test("no text has a phrase that is not plain English", () => {
  const files = [CODE, ...PROSE].flatMap(filesOf);
  expect(files).toContain("README.md");
  expect(files).toContain("docs/api.md");
  expect(files.flatMap((file) => findings(file, PHRASE))).toEqual([]);
});
