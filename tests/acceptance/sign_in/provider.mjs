// A provider of OpenID Connect for tests: node provider.mjs PORT HOST REDIRECT_URI…
//
// The cookie "who" of a visitor says who they are; nobody types a password. POST /control sets the
// people (subject -> claims, null: no account any more) and how answers are falsified ("" for not at
// all). POST /logout-token returns a logout token of a subject.
import { createServer } from "node:http";
import { Provider } from "oidc-provider";
import { SignJWT, base64url, decodeJwt, exportJWK, generateKeyPair } from "jose";

const [port, host, ...redirectUris] = process.argv.slice(2);
const issuer = `http://${host}:${port}`;
const kid = "key";
const own = await generateKeyPair("RS256", { extractable: true });
const foreign = await generateKeyPair("RS256", { extractable: true });
const state = { people: {}, falsify: "" };

const changes = {
  issuer: { iss: "http://elsewhere.example" },
  audience: { aud: "another-client" },
  "authorized party": { azp: "another-client" },
  nonce: { nonce: "of another sign-in" },
  "no nonce": { nonce: undefined },
  expired: { iat: 1, exp: 2 },
  "no end": { exp: undefined },
};

async function falsified(idToken) {
  const claims = { ...decodeJwt(idToken), ...(changes[state.falsify] ?? {}) };
  return signed(claims, state.falsify);
}

function signed(claims, falsify) {
  if (falsify === "unsigned") {
    const header = base64url.encode(JSON.stringify({ alg: "none", kid }));
    return `${header}.${base64url.encode(JSON.stringify(claims))}.`;
  }
  const key = falsify === "signature" ? foreign.privateKey : own.privateKey;
  return new SignJWT(claims).setProtectedHeader({ alg: "RS256", kid }).sign(key);
}

const eventOfLogout = "http://schemas.openid.net/event/backchannel-logout";
const changedLogout = {
  ...changes,
  "no event": { events: {} },
  "no jti": { jti: undefined },
  nobody: { sub: undefined },
  old: { iat: Math.floor(Date.now() / 1000) - 3600 },
};

async function logoutToken({ subject, falsify }) {
  const now = Math.floor(Date.now() / 1000);
  const claims = {
    iss: issuer,
    aud: "stateyard",
    sub: subject,
    iat: now,
    exp: now + 120,
    jti: crypto.randomUUID(),
    events: { [eventOfLogout]: {} },
    ...(changedLogout[falsify] ?? {}),
  };
  return signed(JSON.parse(JSON.stringify(claims)), falsify);
}

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "stateyard",
      client_secret: "a secret of the test",
      redirect_uris: redirectUris,
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      backchannel_logout_uri: redirectUris[0].replace("/callback/", "/logout/"),
      backchannel_logout_session_required: true,
    },
  ],
  jwks: { keys: [{ ...(await exportJWK(own.privateKey)), kid, alg: "RS256", use: "sig" }] },
  cookies: { keys: ["a key of the test"] },
  claims: {
    openid: ["sub"],
    profile: ["preferred_username", "name"],
    email: ["email", "email_verified"],
    groups: ["groups"],
  },
  features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
  issueRefreshToken: async () => true,
  pkce: { required: () => true },
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  findAccount: (_, id) =>
    state.people[id] === null
      ? undefined
      : { accountId: id, claims: () => ({ sub: id, ...state.people[id] }) },
  async loadExistingGrant(ctx) {
    const grant = new ctx.oidc.provider.Grant({
      clientId: ctx.oidc.client.clientId,
      accountId: ctx.oidc.session.accountId,
    });
    grant.addOIDCScope("openid profile email groups offline_access");
    await grant.save();
    return grant;
  },
});

provider.use(async (ctx, next) => {
  if (ctx.path.startsWith("/interaction/")) {
    const who = ctx.cookies.get("who", { signed: false });
    const result = who
      ? { login: { accountId: who } }
      : { error: "access_denied", error_description: "nobody there" };
    const address = await provider.interactionResult(ctx.req, ctx.res, result);
    ctx.redirect(address);
    return;
  }
  await next();
  if (ctx.path === "/token" && ctx.body?.id_token && state.falsify) {
    if (state.falsify === "no ID token") delete ctx.body.id_token;
    else ctx.body.id_token = await falsified(ctx.body.id_token);
  }
  if (ctx.path === "/me" && state.falsify === "subject") {
    ctx.body = { ...ctx.body, sub: "somebody else" };
  }
  if (ctx.path.startsWith("/.well-known/") && state.falsify === "discovery") {
    ctx.body = { ...ctx.body, issuer: "http://elsewhere.example" };
  }
});

const answer = provider.callback();
createServer(async (request, response) => {
  if (!["/control", "/logout-token"].includes(request.url)) return answer(request, response);
  const parts = [];
  for await (const part of request) parts.push(part);
  const sent = JSON.parse(Buffer.concat(parts).toString());
  if (request.url === "/logout-token") return response.end(await logoutToken(sent));
  Object.assign(state, sent);
  return response.end("{}");
}).listen(Number(port), "127.0.0.1", () => console.log("ready"));
