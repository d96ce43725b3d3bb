import { z } from "zod";
import {
  flag,
  ipv6Text,
  list,
  measured,
  named,
  oneOf,
  record,
  shape,
  text,
  type ValueOf,
  whole,
} from "../../api/schemas.ts";
import { ipOrNull, waitedMs } from "../fields.ts";
import { STATUSES } from "../steps.ts";
import { CODES, STEPS } from "./codes.ts";

const seconds = (description: string) => whole(description, 0).nullable();

const bytes = (description: string) => whole(description, 0, 0xffff_ffff).nullable();

/** How long something may be used. */
const lifetime = () => ({ lifetimeSeconds: seconds("How long it may be used; null for ever.") });

/** The lifetimes of an address or of a prefix for addresses. */
const lifetimes = () => ({
  preferredSeconds: seconds("How long it is preferred; null for ever."),
  validSeconds: seconds("How long it is valid; null for ever."),
});

const prefix = () => text("The prefix as CIDR.");

const advertisedPrefix = () =>
  record("A prefix of the link, RFC 4861 section 4.6.2.", {
    prefix: prefix(),
    onLink: flag("Whether its addresses are on the link."),
    autonomous: flag("Whether addresses may be made of it, RFC 4862."),
    ...lifetimes(),
  });

const router = () => {
  const resolver = record("A resolver.", { ip: ipv6Text("Its address."), ...lifetime() });
  const translator = record("A prefix.", { prefix: prefix(), ...lifetime() });
  return record("A router that was heard.", {
    ip: ipv6Text("Its link-local address."),
    lifetimeSeconds: whole("How long it is a default router; 0 if it is none.", 0, 65_535),
    preference: oneOf(["high", "medium", "low"], "Its preference, RFC 4191."),
    managed: flag("Whether DHCPv6 has addresses."),
    other: flag("Whether DHCPv6 has other settings."),
    hopLimit: whole("The hop limit that it recommends; 0 for none.", 0, 255),
    mtu: bytes("The MTU that it gives in bytes; null for none."),
    answers: flag("Whether it answers neighbor discovery; null if it was not asked.").nullable(),
    prefixes: list(advertisedPrefix(), "Its prefixes."),
    resolvers: list(resolver, "Its resolvers, RFC 8106."),
    nat64Prefixes: list(translator, "Its prefixes of translators, RFC 8781."),
  });
};

const address = () =>
  record("An address.", {
    ip: ipv6Text("The address."),
    prefixLength: whole("The bits of its prefix.", 0, 128),
    state: oneOf(["preferred", "deprecated", "tentative", "duplicate"], "Its state, RFC 4862."),
    origin: oneOf(["static", "slaac", "temporary", "dhcp", "kernel"], "Where it is from."),
    ...lifetimes(),
  });

const interfaceRow = () =>
  record("An interface.", {
    name: text("Its name."),
    mtu: bytes("The MTU of IPv6 in bytes; null if IPv6 is not there."),
    state: oneOf(["up", "down"], "Whether it is up and has a carrier."),
    ra: oneOf(["accepted", "ignored", "none"], "What the kernel does with advertisements."),
    addresses: list(address(), "Its addresses."),
    routers: list(router(), "The routers that were heard on it."),
  });

const routeRow = () =>
  record("A route.", {
    prefix: text("The destinations as CIDR."),
    via: ipOrNull("The gateway; null if the destinations are on the link."),
    interface: text("The interface."),
    metric: whole("The metric; the least wins.", 0),
    origin: oneOf(["ra", "static", "kernel", "other"], "Where it is from."),
    expiresSeconds: seconds("When it ends; null for never."),
  });

const stepFields = () => ({
  name: oneOf(STEPS, "What was looked at."),
  interface: text("The interface in question.").exactOptional(),
});

/** The schema of a step that begins. */
export const hereBegin = shape("HereBegin", "A step that begins.", stepFields);

/** The schema of a step. */
export const hereStep = shape("HereStep", "A step of `/here`.", () => ({
  ...stepFields(),
  status: oneOf(STATUSES, "The outcome."),
  finding: oneOf(CODES, "What is not as it should be.").exactOptional(),
  text: text("What was found, in at most 300 characters."),
  ms: whole("Milliseconds from the start until it was known.", 0),
}));

/** The schema of the result. */
export const hereResult = () =>
  named("HereResult", "Why IPv6 works or does not work on a machine.", {
    interfaces: list(interfaceRow(), "The interfaces, at most 64."),
    routes: list(routeRow(), "The routes, at most 4,096."),
    steps: list(hereStep(), "The steps in their order."),
    details: z.strictObject({
      ...measured(),
      verdict: record("The conclusion.", {
        code: z.enum(CODES),
        text: text("One line of at most 400 characters: the cause, and what to do."),
        inSeconds: whole("When IPv6 ends here, in seconds.", 0).exactOptional(),
      }),
      waitedMs: waitedMs(),
    }),
  });

export type HereResult = ValueOf<ReturnType<typeof hereResult>>;

/** A step of the result. */
export type HereStep = ValueOf<ReturnType<typeof hereStep>>;
