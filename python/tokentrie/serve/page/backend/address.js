/** Where the server is, and the key that it is asked with. */

const KEY = "tokentrie-key";

export const key = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (value) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

/** An address of this server, wherever it is mounted. */
export function address(path) {
  return new URL(path.replace(/^\//, ""), document.baseURI.split("#")[0]).href;
}
