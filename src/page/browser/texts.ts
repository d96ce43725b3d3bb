/** Every text of the page that is not of a tool, in English. */
export const TEXTS = {
  title: "sixscope",
  tools: "Tools",
  limit: (left: number, limit: number) => `${left} of ${limit} requests left`,
  run: "Run",
  runAgain: "Run again",
  stop: "Stop",
  waiting: "Waiting for the first answer",
  states: { running: "Running", stopped: "Stopped", broken: "Broken off", done: "Finished" },
  after: (progress: string) => ` after ${progress}`,
  /** The service that a run asked; its host is not known of a result that came with a link or a file. */
  service: (version: string, host: string) => `sixscope ${version}${host && ` at ${host}`}`,
  /** Which part of what was pasted is the target. */
  taken: (target: string, pasted: string) => `“${target}” was taken out of “${pasted}”.`,
  /** A result that was not measured now. */
  given: {
    link: "This result came with the link. The service did not check it: whoever made the link could change it.",
    file: "This result came from a file. The service did not check it: whoever has the file could change it.",
    reading: "Reading the result",
    damaged: "This result is damaged; ask for the link or the file again.",
    noResult:
      "This file is not a result of this version of sixscope; drop one that “Download JSON” has saved.",
    mismatch: "This result is not one of this version of sixscope, so it is not shown.",
    tooLong: (length: number, most: number) =>
      `Too large for a link (${Math.ceil(length / 1000)} of ${most / 1000} kB); download it instead`,
  },
  /** Refusals that end by themselves. */
  wait: {
    RATE_LIMITED: (limit: number) => `The limit of ${limit} requests a minute is used up.`,
    TOO_MANY_PROBES: (limit: number) =>
      `As many measurements are running as may at once (${limit}).`,
    in: (seconds: number) => `Try again in ${seconds} s.`,
    over: "You can try again now.",
  },
  offline: "The service cannot be reached; check your connection and try again.",
  broken: "The connection to the service ended before the result came; try again.",
  /** The heading of a column that has no name. */
  note: "Note",
  /** A number that is not known. */
  nothing: "–",
  copyText: "Copy as text",
  copyLink: "Copy link",
  copyResult: "Copy link with result",
  download: "Download JSON",
  fromShell: "The same from a shell",
  from: {
    label: "From",
    all: "every location",
    tag: (tag: string) => `every ${tag}`,
    hint: "Without a choice, this service measures.",
    heading: (location: string) => `From ${location}`,
  },
  key: {
    field: {
      label: "API key",
      hint: "This tool needs a key from the operator. It is sent to this service only.",
    },
    keep: "Keep it on this device",
    inTab: "The API key stays in this tab.",
    onDevice: "The API key is kept on this device.",
    forget: "Forget it",
    missing: "Enter an API key; the operator of this service has them.",
    refused:
      "The service does not accept this key: it is mistyped, revoked or expired. Enter another.",
  },
  myIp: {
    label: (version: number) => `Your address (IPv${version})`,
    reverse: "Name",
    asking: "looking up",
    noName: "no PTR record",
    unknownName: "not known",
    copy: "Copy the address",
    connection: "Your connection",
    testing: "Testing your connection",
    measurements: "Measurements",
    network: "Network",
    ipv4: "You came over IPv4. From a connection with IPv6, this page shows your IPv6 address.",
  },
  docs: {
    link: "API",
    loading: "Loading the interface document",
    endpoints: "Endpoints",
    parameters: "Parameters",
    needed: "needed",
    byDefault: (value: string) => `default ${value}`,
    needsKey: "needs a key",
    fromShell: "From a shell",
    answers: "Answers",
    document: "OpenAPI document",
  },
} as const;
