/** Credentials of a NATS account with JSON Web Tokens, as services for NATS hand them out. */
import { expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, nkeys } from "@nats-io/transport-node";
import { labMissing, programMissing, testWith } from "../lab/lab.ts";
import { startAgent, startNats } from "../lab/nats.ts";

type KeyPair = ReturnType<typeof nkeys.createUser>;

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** A token with the issuer's claims about the subject, signed. */
function token(issuer: KeyPair, subject: KeyPair, type: string, claims: object = {}): string {
  const content = {
    jti: crypto.randomUUID(),
    iat: Math.floor(Date.now() / 1000),
    iss: issuer.getPublicKey(),
    sub: subject.getPublicKey(),
    name: type,
    nats: { type, version: 2, ...claims },
  };
  const signed = `${part({ typ: "JWT", alg: "ed25519-nkey" })}.${part(content)}`;
  const signature = Buffer.from(issuer.sign(new TextEncoder().encode(signed)));
  return `${signed}.${signature.toString("base64url")}`;
}

testWith(labMissing ?? programMissing("nats-server"))(
  "an agent logs in with a credentials file, where a client without one is refused",
  async () => {
    const [operator, account] = [nkeys.createOperator(), nkeys.createAccount()];
    const user = nkeys.createUser();
    const any = { subs: -1, data: -1, payload: -1 };
    const all = { ...any, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 };
    const accountToken = token(operator, account, "account", { limits: all });
    await using nats = await startNats(
      `operator: ${token(operator, operator, "operator")}
       resolver: MEMORY
       resolver_preload: { ${account.getPublicKey()}: ${accountToken} }`,
    );
    const folder = mkdtempSync(join(tmpdir(), "sixscope-creds-"));
    const file = join(folder, "ams.creds");
    const seed = new TextDecoder().decode(user.getSeed());
    await Bun.write(
      file,
      `-----BEGIN NATS USER JWT-----\n${token(account, user, "user", any)}\n------END NATS USER JWT------\n\n` +
        `-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`,
    );
    const settings = {
      SIXSCOPE_NATS_URL: nats.url,
      SIXSCOPE_NATS_CREDS: file,
      SIXSCOPE_LOCATION: "ams",
    };
    await expect(connect({ servers: nats.url })).rejects.toThrow("Authorization Violation");
    // It resolves when the agent has connected.
    await using agent = await startAgent(settings);
    expect(agent.stderr()).not.toContain("no connection to NATS");
    rmSync(folder, { recursive: true });
  },
);
