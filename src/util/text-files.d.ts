/** Files that are imported as text. */
declare module "*.lua" {
  const text: string;
  export = text;
}
/** Also `.bash`, `.fish` and `.zsh`. */
declare module "*sh" {
  const text: string;
  export = text;
}
