import { expect, test } from "bun:test";
import { ambiguityOf } from "../scripts/lint/ambiguity.ts";

test.each([/(a+)+$/, /^(a|a)*$/, /^(a*)*$/, /^(?:ab|a|b)*$/, /^(\w|\d)+!/, /^(?:\w+\s?)+$/i])(
  "refuses %p as exponential",
  ({ source, flags }) => {
    expect(ambiguityOf(source, flags)).toBe("exponential");
  },
);

test.each([
  /^a*a*$/,
  /^ *(.*?) *$/,
  /^(.+),(.+),(.+)$/,
  // Whatever precedes a repetition, the search begins at each of its characters.
  /a*$/,
  / +x/,
  /x.*y/,
  /:\/\/.*@/,
  /ab.*?c/s,
  /(?<!\\).*;/s,
  /(?:x.*)y/i,
  /^\s+x/m,
  /^location:[ \t]*(.*?)[ \t]*$/im,
  // A line ends with a carriage return too.
  /^[^:\n]+:/m,
  /\S+$/,
  // Each match is the shorter one, and the longer one is tried each time.
  /^(?:a(?:a*b)?)*/,
  /"(?:\\.|[^"\\])*"|[^\s"]+/g,
  /^[ \t]*x=[ \t]*([^"]*?)[ \t]*$/,
  /^.*(?<=a.*b)/,
])("refuses %p as polynomial", ({ source, flags }) => {
  expect(ambiguityOf(source, flags)).toBe("polynomial");
});

test.each([
  /a+/g,
  /^a+b/,
  /x.*/,
  /[^x]+/g,
  /^( +x)/m,
  /^(?:a|b)*$/,
  /^(a?)*$/,
  /^(?:[^"]|"")*$/,
  /(?:\\.|[^.\\])+/g,
  /^(?:a(?:b*c)?)*/,
  /\{(\w+)\}/g,
  /^(?=.*a)(?:.*b)/,
  /^[a-z]{1,32}(,[a-z]{1,32}){0,31}$/,
  /[\p{ASCII}--[a-z]]+/v,
  /^\p{L}+\d/u,
])("accepts %p", ({ source, flags }) => {
  expect(ambiguityOf(source, flags)).toBe(null);
});
