//! Use of the library wasmi: a compiled module, and instances that are called with limited fuel.

use super::error::WasmError;
use trie_core::work::Limits;
use wasmi::{
    CompilationMode, Config, Engine, Error, Linker, Module, Store, StoreLimits, StoreLimitsBuilder, TrapCode,
    TypedFunc, WasmParams, WasmResults,
};

/// Shares of [`Limits`] that a module and its memory, one call and all calls for one answer may take.
const MODULE: usize = 256;
const MEMORY: usize = 64;
const CALL: u64 = 400;
const ANSWER: u64 = 4;

/// Elements of a table; nothing can be called but what a module has, so that more are of no use.
const MOST_ELEMENTS: usize = 10_000;

/// Code of a compiled module.
pub(super) struct Code {
    module: Module,
    limits: Limits,
}

/// A module in memory of its own.
pub(super) struct Instance {
    store: Store<StoreLimits>,
    fuel: u64,
    start: TypedFunc<(), i64>,
    step: TypedFunc<(i64, i32), i64>,
    is_end: TypedFunc<i64, i32>,
    allowed: Option<TypedFunc<(i64, i32), i64>>,
    /// The bytes that may follow the state that was asked last.
    known: Option<(i64, [u64; 4])>,
}

impl Code {
    pub(super) fn new(bytes: &[u8], limits: Limits) -> Result<Self, WasmError> {
        let most = limits.bytes / MODULE;
        if bytes.len() > most {
            return Err(WasmError::TooLarge { bytes: bytes.len(), most });
        }
        // Compiled at once: later it would take fuel, and how much would depend on who comes first.
        let mut config = Config::default();
        config.consume_fuel(true).compilation_mode(CompilationMode::Eager).ignore_custom_sections(true);
        config.allow_start_fn(false).wasm_multi_memory(false).wasm_custom_page_sizes(false);
        let invalid = |error: Error| WasmError::Invalid { reason: error.to_string() };
        let module = Module::new(&Engine::new(&config), bytes).map_err(invalid)?;
        if let Some(import) = module.imports().next() {
            return Err(WasmError::Import { name: format!("{}.{}", import.module(), import.name()) });
        }
        Ok(Self { module, limits })
    }

    /// The fuel of all calls for one answer.
    pub(super) fn most_fuel(&self) -> u64 {
        self.limits.steps / ANSWER
    }

    pub(super) fn instance(&self) -> Result<Instance, WasmError> {
        let engine = self.module.engine();
        let limits = StoreLimitsBuilder::new().memory_size(self.limits.bytes / MEMORY).table_elements(MOST_ELEMENTS);
        let mut store = Store::new(engine, limits.instances(1).memories(1).tables(1).build());
        store.limiter(|limits| limits);
        let fuel = self.limits.steps / CALL;
        let cannot = |error: Error| WasmError::Instance { reason: error.to_string() };
        store.set_fuel(fuel).map_err(cannot)?;
        let made = Linker::new(engine).instantiate_and_start(&mut store, &self.module).map_err(cannot)?;
        let step = "(i64, i32) -> i64";
        let missing = |name, signature| move |_: Error| WasmError::Export { name, signature };
        Ok(Instance {
            fuel,
            start: made.get_typed_func(&store, "start").map_err(missing("start", "() -> i64"))?,
            step: made.get_typed_func(&store, "step").map_err(missing("step", step))?,
            is_end: made.get_typed_func(&store, "is_end").map_err(missing("is_end", "(i64) -> i32"))?,
            allowed: match made.get_export(&store, "allowed") {
                None => None,
                Some(_) => Some(made.get_typed_func(&store, "allowed").map_err(missing("allowed", step))?),
            },
            known: None,
            store,
        })
    }
}

impl Instance {
    pub(super) fn start(&mut self) -> Result<i64, WasmError> {
        self.refuel();
        self.call("start", self.start, ())
    }

    pub(super) fn step(&mut self, state: i64, byte: u8) -> Result<i64, WasmError> {
        const REFUSED: i64 = -1;
        self.refuel();
        if let Some(allowed) = self.allowed {
            if self.known.is_none_or(|(known, _)| known != state) {
                let mut bytes = [0; 4];
                for (word, bits) in (0..).zip(&mut bytes) {
                    *bits = self.call("allowed", allowed, (state, word))? as u64;
                }
                self.known = Some((state, bytes));
            }
            let may = self.known.is_some_and(|(_, bytes)| bytes[usize::from(byte / 64)] >> (byte % 64) & 1 == 1);
            if !may {
                return Ok(REFUSED);
            }
        }
        self.call("step", self.step, (state, i32::from(byte)))
    }

    pub(super) fn is_end(&mut self, state: i64) -> Result<bool, WasmError> {
        self.refuel();
        Ok(self.call("is_end", self.is_end, state)? != 0)
    }

    /// The fuel that was used since it was last asked.
    pub(super) fn used(&self) -> u64 {
        self.fuel - self.store.get_fuel().unwrap_or_default().min(self.fuel)
    }

    fn refuel(&mut self) {
        // It fails only without fuel metering.
        _ = self.store.set_fuel(self.fuel);
    }

    fn call<P: WasmParams + std::fmt::Debug + Copy, R: WasmResults>(
        &mut self,
        function: &'static str,
        of: TypedFunc<P, R>,
        given: P,
    ) -> Result<R, WasmError> {
        of.call(&mut self.store, given).map_err(|error| {
            let arguments = format!("{given:?}");
            let arguments = if arguments.starts_with('(') { arguments } else { format!("({arguments})") };
            match error.as_trap_code() {
                Some(TrapCode::OutOfFuel) => WasmError::Fuel { function, arguments, fuel: self.fuel },
                _ => WasmError::Trap { function, arguments, reason: error.to_string() },
            }
        })
    }
}
