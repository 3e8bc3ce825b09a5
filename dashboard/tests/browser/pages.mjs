// Every page, by its address.
export const dependency = "catalog";
export const operation = "get-item";

/** Where a dependency's policy is edited, and where its hedging is shown. */
export const at = {
  policy: `/policies/${dependency}`,
  route: `/dependencies/${dependency}/${operation}`,
};

export const pages = [
  { name: "overview", path: "/" },
  { name: "dependency", path: at.route },
  { name: "policies", path: "/policies" },
  { name: "policy", path: at.policy },
  { name: "kill", path: "/kill" },
  { name: "agents", path: "/agents" },
  { name: "alerts", path: "/alerts" },
  { name: "receivers", path: "/receivers" },
  { name: "record", path: "/record" },
  { name: "controller", path: "/controller" },
  { name: "access", path: "/access" },
];

/** What has no event stream. */
export const bare = [
  { name: "login", path: "/login", open: true },
  { name: "unknown", path: "/there-is-no-such-page", status: 404 },
];

/**
 * Why hedging is as it is, while nobody has switched it off. Where browser, controller and replicas
 * share a busy machine, all replicas may well be slow together.
 */
export const reason = /hedging calls slower than [\d.]+ ms|slow together|shared slowdown/i;
