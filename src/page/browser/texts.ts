/** Every text of the page that is not of a tool, in English. */
export const TEXTS = {
  title: "sixscope",
  /** Of the page without JavaScript. */
  page: {
    title: "sixscope: IPv6 looking glass",
    docsTitle: "sixscope: API",
    description: "Your address, IPv6 validation, DNS, ping, traceroute, loss by hop and path MTU",
    needsScript:
      "The other tools on this page need JavaScript. In a shell, curl with this page's address prints yours.",
    docsHeading: "sixscope API",
    docsLink: "The OpenAPI document describes every endpoint.",
  },
  tools: "Tools",
  limit: (left: number, limit: number) => `${left} of ${limit} requests left`,
  run: "Run",
  runAgain: "Run again",
  stop: "Stop",
  waiting: "Waiting for the first answer",
  states: { running: "Running", stopped: "Stopped", broken: "Broken off", done: "Finished" },
  after: (progress: string) => ` after ${progress}`,
  /** When a run started, and which service it asked. */
  stamp: (utc: string, version: string, host: string) => `${utc}, sixscope ${version} at ${host}`,
  retryIn: (seconds: number) => `Try again in ${seconds} s.`,
  retryNow: "You can try again now.",
  offline: "The service cannot be reached; check your connection and try again.",
  broken: "The connection to the service ended before the result came; try again.",
  /** The heading of a column that has no name. */
  note: "Note",
  /** A number that is not known. */
  nothing: "–",
  copyText: "Copy as text",
  copyLink: "Copy link",
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
  },
  myIp: {
    label: (version: number) => `Your address (IPv${version})`,
    reverse: "Name",
    asking: "looking up",
    noName: "no PTR record",
    copy: "Copy the address",
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
