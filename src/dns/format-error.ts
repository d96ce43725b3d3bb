/** A name or message that breaks the format of the DNS, whether it was received or was to be sent. */
export class DnsFormatError extends Error {
  override readonly name = "DnsFormatError";
}
