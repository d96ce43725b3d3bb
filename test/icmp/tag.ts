/** Random bytes by which a prober has a given tag. */
export function withTag(tag: number): (bytes: Uint8Array<ArrayBuffer>) => void {
  return (bytes) => {
    if (bytes.length === 1) bytes[0] = tag;
    else crypto.getRandomValues(bytes);
  };
}
