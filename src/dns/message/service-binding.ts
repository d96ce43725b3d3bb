import { ByteReader } from "../../util/bytes.ts";
import { DATA_READERS, plainText } from "./data.ts";
import { byteTexts, DnsFormatError, readName } from "./name.ts";

/** The parameters that `dig` names, by number, with readers of their values; RFC 9460 section 14.3.2. */
const PARAMETERS: readonly { name: string; read: (value: ByteReader) => string }[] = [
  { name: "mandatory", read: listOf((value) => parameterName(value.uint16())) },
  { name: "alpn", read: (value) => `"${listOf(protocolText)(value)}"` },
  { name: "no-default-alpn", read: DATA_READERS.text },
  { name: "port", read: DATA_READERS.uint16 },
  { name: "ipv4hint", read: listOf(DATA_READERS.ipv4) },
  { name: "ech", read: (value) => value.rest().toBase64() },
  { name: "ipv6hint", read: listOf(DATA_READERS.ipv6) },
];

/** The bytes of a protocol identifier: the escapes of a list inside those of a character-string; RFC 9460 appendix A.1. */
const PROTOCOL_BYTE_TEXT = byteTexts(0x21, '"').with(0x2c, "\\\\,").with(0x5c, "\\\\\\\\");

/** Reads an SVCB or HTTPS record; RFC 9460 section 2.2. */
export function readServiceBinding(reader: ByteReader): string {
  const words = [String(reader.uint16()), readName(reader)];
  while (reader.remaining > 0) {
    const number = reader.uint16();
    const value = new ByteReader(reader.take(reader.uint16()));
    const name = parameterName(number);
    const read = PARAMETERS[number]?.read ?? DATA_READERS.text;
    words.push(value.remaining === 0 ? name : `${name}=${read(value)}`);
    if (value.remaining > 0) throw new DnsFormatError(`the value of ${name} is too long`);
  }
  return words.join(" ");
}

function parameterName(number: number): string {
  return PARAMETERS[number]?.name ?? `key${number}`;
}

/** Values without a separator, up to the end, with commas between them. */
function listOf(read: (value: ByteReader) => string): (value: ByteReader) => string {
  return (value) => {
    const texts: string[] = [];
    while (value.remaining > 0) texts.push(read(value));
    return texts.join(",");
  };
}

function protocolText(value: ByteReader): string {
  return plainText(value.take(value.uint8()), PROTOCOL_BYTE_TEXT);
}
