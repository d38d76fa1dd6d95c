// A real provider of OpenID Connect for tests: `oidc-provider`, with people whom a test changes.
// node oidc_server.mjs PORT CLIENT SECRET REDIRECT_URI... ; it prints "ready" and serves until its input ends.
import { createServer } from "node:http";
import Provider from "oidc-provider";

const [port, client_id, client_secret, backchannel_logout_uri, post_logout, ...redirect_uris] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const people = new Map();
console.warn = () => undefined;
console.info = () => undefined;

const provider = new Provider(issuer, {
  clients: [
    {
      client_id,
      client_secret,
      redirect_uris,
      backchannel_logout_uri,
      backchannel_logout_session_required: true,
      post_logout_redirect_uris: [post_logout],
    },
  ],
  claims: { openid: ["sub", "sid"], email: ["email", "email_verified"], profile: ["name"], groups: ["groups"] },
  scopes: ["openid", "email", "profile", "groups"],
  fetch: (url, options) => fetch(url, { ...options, dispatcher: undefined }), // the default one refuses loopback
  cookies: { keys: ["a-key-of-the-cookies"] },
  features: { devInteractions: { enabled: true }, backchannelLogout: { enabled: true } },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({
      sub: id,
      email: `${id}@example.org`,
      email_verified: true,
      name: id,
      ...(people.get(id) ?? {}),
    }),
  }),
});

const serve = provider.callback();
const server = createServer(async (request, response) => {
  if (!request.url.startsWith("/control/")) return serve(request, response);
  let body = "";
  for await (const piece of request) body += piece;
  const [, , verb, id] = request.url.split("/");
  try {
    if (verb === "person") people.set(id, JSON.parse(body));
    if (verb === "logout") {
      const client = await provider.Client.find(client_id);
      await client.backchannelLogout(id, body);
    }
    response.writeHead(200).end();
  } catch (error) {
    response.writeHead(500).end(String(error));
  }
});
server.listen(Number(port), "127.0.0.1", () => process.stdout.write("ready\n"));
process.stdin.on("end", () => process.exit(0)).resume();
