/** Why a script cannot run here, and whether installing a Debian package would help. */
export interface Missing {
  readonly reason: string;
  readonly canBeInstalled: boolean;
}

/** Ends a script that cannot run here, and says why: with status 0, or 1 in CI if it could have installed what is missing. */
export function skip({ reason, canBeInstalled }: Missing): never {
  const isFailure = canBeInstalled && Boolean(process.env["CI"]);
  console.log(`${isFailure ? "failed" : "skipped"}: ${reason}`);
  process.exit(isFailure ? 1 : 0);
}
