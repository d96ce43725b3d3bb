import { INSTALLED, type InstalledService, propertyOf } from "../installed.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";

/** Whether the installed service has the user and the capability that it needs, and runs. */
export function checkService({ user, userName, unit }: InstalledService): readonly Finding[] {
  const triedUser = `find the service's user ${userName}`;
  const found = [
    user === null
      ? problem(triedUser, "there is none", "systemd-sysusers sixscope.conf")
      : ok(triedUser, `uid ${user.uid}`),
  ];
  if (unit === null) {
    const tried = `ask systemd about ${INSTALLED.unit}`;
    return [...found, warning(tried, "systemd does not answer", "is it what runs this machine?")];
  }
  const triedCapability = `see whether ${INSTALLED.unit} has CAP_NET_RAW`;
  const state = propertyOf(unit, "ActiveState");
  const isAble = propertyOf(unit, "AmbientCapabilities").includes("cap_net_raw") || user?.uid === 0;
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
    state === "active"
      ? ok(triedState, "it is active")
      : problem(
          triedState,
          `it is ${state}`,
          `journalctl -u sixscope says why; then ${state === "failed" ? "systemctl reset-failed sixscope, and " : ""}systemctl restart sixscope`,
        ),
  ];
}
