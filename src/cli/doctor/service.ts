import { exposureOf } from "../../config/exposure.ts";
import type { Command } from "../../util/command.ts";
import { printable } from "../../util/text.ts";
import { INSTALLED, propertyOf } from "../installed.ts";
import { type Finding, RESTART, type Scene, trying } from "./finding.ts";

/** How the service gets its capabilities back. */
const GRANT =
  "grant it: systemctl edit sixscope, and under [Service] set AmbientCapabilities= and CapabilityBoundingSet= to CAP_NET_RAW CAP_NET_BIND_SERVICE; then restart the service";

/** Lets doctor see everything. */
export const ASK_AS_ROOT: Command = ["sudo", "sixscope", "doctor"];

/** Checks that the installed service runs. */
export function checkUnit({ service }: Pick<Scene, "service">): readonly Finding[] {
  if (service === null) return [];
  const { ok, problem, unknown } = trying(`see whether ${INSTALLED.unit} runs`);
  const state = propertyOf(service.unit, "ActiveState");
  if (state === "active") return [ok("it is active")];
  // Without D-Bus, systemd answers root only.
  if (state === "") return [unknown("no answer", "ask as root, if systemd runs", ASK_AS_ROOT)];
  const again = "; if systemd refuses, systemctl reset-failed sixscope first";
  const why = `journalctl -u sixscope says why; start it when the other problems are solved${state === "failed" ? again : ""}`;
  return [problem(`it is ${state}`, why, RESTART)];
}

/** Shows what the running process says of itself, and whether it is what the settings are for. */
export function checkStatus({ config, status, service, isCurrent }: Scene): readonly Finding[] {
  const { ok, warning, unknown } = trying(`ask the process at ${config.statusSocket}`);
  const run = service && RESTART;
  if (status === null) {
    const why = "it does not run, or not with these settings";
    return service === null ? [] : [unknown("no answer", why, run)];
  }
  const about = printable(status.about);
  const found = isCurrent
    ? ok(about)
    : warning(`${about}; it runs with other settings than are set now`, "restart it", run);
  if (status.withoutProbes === null) return [found];
  const { problem } = trying("see whether the running process can probe");
  return [
    found,
    problem(printable(status.withoutProbes), service === null ? "grant CAP_NET_RAW" : GRANT),
  ];
}

/** Shows who may do what, and each setting that is a risk. */
export function checkExposure({ config, role, setting }: Scene): readonly Finding[] {
  const { ok, warning } = trying("permissions");
  const { sentence, risks } = exposureOf(config, role === "agent" ? null : undefined);
  const found = risks.map(({ variable, text, advice }) =>
    warning(text, `${advice}: ${setting(variable)}`),
  );
  return [ok(sentence), ...found];
}
