/** An object with the same names; `make` makes each value from the value of the other object. */
export function mapValues<Name extends string, Value, Made>(
  values: Readonly<Record<Name, Value>>,
  make: (value: Value, name: Name) => Made,
): Record<Name, Made> {
  const entries = Object.entries(values) as [Name, Value][];
  const made = entries.map(([name, value]) => [name, make(value, name)]);
  return Object.fromEntries(made);
}
