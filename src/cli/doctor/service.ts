import { readFileSync } from "node:fs";
import { INSTALLED, type User } from "../installed.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";

/** The service's user; null where there is none. */
export function serviceUser(): User | null {
  const passwords = readFileSync("/etc/passwd", "utf8");
  const line = passwords.split("\n").find((entry) => entry.startsWith(`${INSTALLED.user}:`));
  const [, , uid, gid] = line?.split(":") ?? [];
  return uid === undefined || gid === undefined ? null : { uid: Number(uid), gid: Number(gid) };
}

/** Whether the installed service has the user and the capability that it needs, and runs. */
export async function checkService(user: User | null): Promise<readonly Finding[]> {
  const triedUser = `find the service's user ${INSTALLED.user}`;
  const found = [
    user === null
      ? problem(triedUser, "there is none", "systemd-sysusers sixscope.conf")
      : ok(triedUser, `uid ${user.uid}`),
  ];
  const unit = await unitProperties();
  if (unit === null) {
    const tried = `ask systemd about ${INSTALLED.unit}`;
    return [...found, warning(tried, "systemd does not answer", "is it what runs this machine?")];
  }
  const triedCapability = `see whether ${INSTALLED.unit} has CAP_NET_RAW`;
  const { ActiveState = "unknown", AmbientCapabilities = "", User = "" } = unit;
  const isAble = AmbientCapabilities.includes("cap_net_raw") || User === "" || User === "root";
  const triedState = `see whether ${INSTALLED.unit} runs`;
  return [
    ...found,
    isAble
      ? ok(triedCapability, "it has")
      : problem(
          triedCapability,
          "it has not, so ping and traceroute do not work",
          "AmbientCapabilities=CAP_NET_RAW in systemctl edit sixscope",
        ),
    ActiveState === "active"
      ? ok(triedState, "it is active")
      : problem(
          triedState,
          `it is ${ActiveState}`,
          "journalctl -u sixscope says why; then systemctl restart sixscope",
        ),
  ];
}

async function unitProperties(): Promise<Record<string, string> | null> {
  const properties = "--property=ActiveState,AmbientCapabilities,User";
  if (Bun.which("systemctl") === null) return null;
  const child = Bun.spawn(["systemctl", "show", properties, INSTALLED.unit], { stderr: "ignore" });
  const [text, status] = await Promise.all([child.stdout.text(), child.exited]);
  if (status !== 0) return null;
  return Object.fromEntries(
    text
      .trim()
      .split("\n")
      .map((line) => line.split(/=(.*)/s).slice(0, 2)),
  );
}
