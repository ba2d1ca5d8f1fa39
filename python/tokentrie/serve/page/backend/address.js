/** The address of the server, and the key for its requests. */

const KEY = "tokentrie-key";

export const key = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (value) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

/** An address of this server, wherever it is mounted. */
export function address(path) {
  return new URL(path.replace(/^\//, ""), document.baseURI.split("#")[0]).href;
}
