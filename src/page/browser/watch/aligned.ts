/** Two lists in rows: items that both have, in the same order, share a row; items that differ are side by side. */
export function aligned<Item>(
  before: readonly Item[],
  after: readonly Item[],
  textOf: (item: Item) => string,
) {
  const rows: [Item | null, Item | null][] = [];
  const rest = [...after];
  let gone: Item[] = [];
  const pair = (come: readonly Item[]) => {
    const count = Math.max(gone.length, come.length);
    for (let at = 0; at < count; at++) rows.push([gone[at] ?? null, come[at] ?? null]);
    gone = [];
  };
  for (const item of before) {
    const at = rest.findIndex((each) => textOf(each) === textOf(item));
    if (at >= 0) pair(rest.splice(0, at));
    if (at >= 0) rows.push([item, rest.shift() ?? null]);
    else gone.push(item);
  }
  pair(rest);
  return rows;
}
