import assert from "node:assert/strict";
import type { Machine } from "./machine.ts";

export const UNIT = "sixscope.service";

/** Where the service listens by default. */
export const BASE = "http://[::1]:8080/api/v1";

/** Bits of sets of capabilities; linux/capability.h. */
export const CAP = { netBindService: 1 << 10, netRaw: 1 << 13 } as const;

/** A response of the service. */
interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** The actions of an administrator in a machine that runs the service; /opt/bun must exist. */
export function administrator(machine: Machine) {
  const sh = (script: string) => machine.run(["sh", "-ec", script]);
  const bun = (code: string) => machine.run(["/opt/bun", "-e", code]);
  const show = async (property: string) =>
    (await machine.run(["systemctl", "show", "--value", `--property=${property}`, UNIT])).trim();
  return {
    /** Runs shell commands up to the first that fails. */
    sh,
    /** Runs a program text. */
    bun,
    /** A property of the unit. */
    show,
    /** Gives the machine an address and a gateway, which answers on its link. */
    linkGateway: () =>
      sh(`ip netns add gateway; ip link add uplink type veth peer name far netns gateway
        ip -n gateway address add fe80::1/64 dev far nodad; ip -n gateway link set far up
        ip address add 2001:db8::5/64 dev uplink nodad; ip link set uplink up
        ip -6 route add default via fe80::1 dev uplink`),
    /** Appends lines to the settings. */
    configure: (lines: readonly string[]) =>
      machine.run(["tee", "-a", "/etc/sixscope/sixscope.env"], `${lines.join("\n")}\n`),
    /** Adds lines to the unit's section [Service] until the next boot, and restarts the service. */
    async dropIn(name: string, lines: string): Promise<void> {
      const folder = `/run/systemd/system/${UNIT}.d`;
      await sh(`mkdir -p ${folder}`);
      await machine.run(["tee", `${folder}/${name}.conf`], `[Service]\n${lines}\n`);
      await sh(`systemctl daemon-reload; systemctl restart ${UNIT}`);
    },
    /** Asks the service. */
    get: async (path: string, key = "", base = BASE): Promise<Answer> =>
      JSON.parse(
        await bun(`const response = await fetch(${JSON.stringify(base + path)}, {
            headers: ${JSON.stringify(key === "" ? {} : { "X-API-Key": key })},
            tls: { rejectUnauthorized: false },
          });
          console.log(JSON.stringify({ status: response.status, body: await response.json() }));`),
      ),
    /** The capabilities of all threads of the service: those it has, and those in the bounding set. */
    async capabilities(): Promise<{ held: number[]; bounding: number[] }> {
      const status = await sh("cat /proc/$(pidof sixscope)/task/*/status");
      const sets = (names: string) => {
        const found = status.matchAll(new RegExp(`^Cap(?:${names}):\\s*(\\w+)$`, "gm"));
        return [...new Set([...found].map(([, hex = ""]) => Number.parseInt(hex, 16)))];
      };
      return { held: sets("Prm|Eff|Amb"), bounding: sets("Bnd") };
    },
  };
}

/** Asserts that a request succeeded, and that the answer contains a text. */
export function assertHas({ status, body }: Answer, text: string): void {
  assert.equal(status, 200);
  assert.ok(JSON.stringify(body).includes(text), JSON.stringify(body));
}
