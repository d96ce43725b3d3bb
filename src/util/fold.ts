/**
 * Makes a fold over a list that grows, such as the events of a run. Each element is folded once, however often the fold
 * is called: results are kept by the first element of a list, so a copy of the list works too. A shorter list starts
 * anew.
 *
 * @param begin makes the result for an empty list
 */
export function foldOf<Element extends object, Made>(
  begin: () => Made,
  step: (made: Made, element: Element) => Made,
): (list: readonly Element[]) => Made {
  const results = new WeakMap<Element, { readonly made: Made; readonly length: number }>();
  return (list) => {
    const [first] = list;
    if (first === undefined) return begin();
    const last = results.get(first);
    const before = last && last.length <= list.length ? last : { made: begin(), length: 0 };
    const made = list.slice(before.length).reduce(step, before.made);
    results.set(first, { made, length: list.length });
    return made;
  };
}
