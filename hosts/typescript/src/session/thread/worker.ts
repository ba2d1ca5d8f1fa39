/**
 * The thread of a session. Forward passes can be long: on this thread they do not block the event loop. Errors of
 * the library are per thread, so they are read here too.
 */
import { parentPort, workerData } from "node:worker_threads";
import "../../ffi/files.js";
import { loadLibrary } from "../../ffi/library.js";
import { NativeSession } from "./native-session.js";
import { type Answer, plain, type Request, type TokenMessage } from "./protocol.js";

const port = parentPort;
if (port === null) throw new Error("this file is the thread of a session, and nothing to import");

const session = new NativeSession(loadLibrary((workerData as { library: string }).library), (token, text) => {
  port.postMessage({ token, text } satisfies TokenMessage);
});

port.on("message", ({ id, call, given }: Request) => {
  let answer: Answer;
  try {
    answer = { id, value: (session[call] as (...given: readonly unknown[]) => unknown)(...given) };
  } catch (error) {
    answer = { id, error: plain(error) };
  }
  port.postMessage(answer);
});
