/** How the person at the terminal calls this program. */
export function ownCommand(): string {
  if (Bun.main.startsWith("/$bunfs/")) return "sixscope";
  return process.execPath.includes("/_npx/") ? "npx -y bun@1.4.4 run sixscope" : "bun run sixscope";
}
