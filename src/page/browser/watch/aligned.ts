/** Two lists in rows: what both have is in one row, as long as its order is the same. */
export function aligned(before: readonly string[], after: readonly string[]) {
  const rows: [string | null, string | null][] = [];
  const rest = [...after];
  for (const line of before) {
    const at = rest.indexOf(line);
    if (at < 0) {
      rows.push([line, null]);
      continue;
    }
    rows.push(...rest.splice(0, at).map((added): [null, string] => [null, added]));
    rows.push([line, rest.shift() as string]);
  }
  return [...rows, ...rest.map((added): [null, string] => [null, added])];
}
