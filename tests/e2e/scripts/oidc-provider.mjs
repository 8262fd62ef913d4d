// A certified provider (oidc-provider) that signs one person in and agrees to everything.
// Told on stdin: {port, resource, audience}; prints a line once it listens.
import { Provider } from "oidc-provider";
import { readFileSync } from "node:fs";

const { port, resource, audience } = JSON.parse(readFileSync(0, "utf8"));
const issuer = `http://127.0.0.1:${port}`;
const provider = new Provider(issuer, {
  scopes: ["openid", "offline_access", "memory:read", "memory:write"],
  features: {
    registration: { enabled: true },
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({
        scope: "memory:read memory:write",
        audience,
        accessTokenFormat: "jwt",
        jwt: { sign: { alg: "RS256" } },
      }),
    },
  },
  clientDefaults: { token_endpoint_auth_method: "none" },
  rotateRefreshToken: true,
  findAccount: (_, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
  interactions: { url: (_, interaction) => `/agree/${interaction.uid}` },
});
provider.use(async (ctx, next) => {
  if (!ctx.path.startsWith("/agree/")) return next();
  const { params, grantId, prompt } = await provider.interactionDetails(ctx.req, ctx.res);
  if (prompt.name === "login") {
    return provider.interactionFinished(ctx.req, ctx.res, { login: { accountId: "anna-7f3a" } });
  }
  const grant = grantId
    ? await provider.Grant.find(grantId)
    : new provider.Grant({ accountId: "anna-7f3a", clientId: params.client_id });
  grant.addOIDCScope("openid offline_access memory:read memory:write");
  grant.addResourceScope(resource, "memory:read memory:write");
  const consent = { grantId: await grant.save() };
  return provider.interactionFinished(ctx.req, ctx.res, { consent }, { mergeWithLastSubmission: true });
});
provider.listen(port, "127.0.0.1", () => console.log(JSON.stringify({ issuer })));
