//! How each step begins.

use super::{
    Core,
    operation::{Operation, Progress},
};
use crate::rules::{
    action::{Action, DiskCommand},
    ids::{Endpoint, Epoch, Millis, OpId},
    knobs::{EffectPlace, Placement, ProviderIdentity},
    message::{Message, ProviderCall},
    outcome::{Outcome, Refused, Unknown},
    plan::Step,
    record::{EffectRow, Executed, Execution, Record},
};

impl Core {
    /// Begins a step. Those that need nobody else are done at once.
    pub(super) fn begin(
        &mut self,
        now: Millis,
        op: OpId,
        operation: &mut Operation,
        step: Step,
        out: &mut Vec<Action>,
    ) -> Progress {
        let disk = |command| Action::Disk { op, command };
        let send = |to, message| Action::Send { op, to, message };
        let slot = || operation.slot.clone();
        let patient = Some(now.plus(self.patience.answer_ms));
        match step {
            Step::LookInMap => {
                return match self.map.get(&operation.slot) {
                    Some(receipt) => self.found(operation, receipt.clone()),
                    None => Progress::Done,
                };
            }
            Step::PutInMap => return self.put_in_map(operation),
            Step::LookOnDisk => out.push(disk(DiskCommand::Look(slot()))),
            Step::LookAtReceipts => out.push(disk(DiskCommand::LookReceipt(slot()))),
            Step::Intend => out.push(disk(DiskCommand::Intent(self.execution(operation)))),
            Step::Effect => out.push(disk(DiskCommand::Effect(self.row(operation)))),
            Step::RecordOnDisk => out.push(disk(DiskCommand::Record(self.record(operation)))),
            Step::Execute => return self.begin_execute(op, operation, out),
            Step::AskMajority => {
                out.push(disk(DiskCommand::Look(slot())));
                out.extend(self.members.others(self.me).map(|to| send(to, Message::Look(slot()))));
                operation.wait_until = patient;
            }
            Step::RecordToAll => {
                let record = self.record(operation);
                out.push(disk(DiskCommand::Record(record.clone())));
                out.extend(self.members.others(self.me).map(|to| send(to, Message::Store(record.clone()))));
                operation.wait_until = patient;
            }
            Step::LookAtKeeper if self.knobs.owner == self.me => out.push(disk(DiskCommand::LookReceipt(slot()))),
            Step::LookAtKeeper => {
                out.push(send(self.knobs.owner, Message::LookAtKeeper(slot())));
                operation.wait_until = patient;
            }
            Step::ExecuteAtKeeper => return self.begin_at_keeper(now, op, operation, out),
            Step::Forward => {
                out.push(send(self.knobs.owner, Message::Forward(operation.request.clone())));
                operation.wait_until = patient;
            }
            Step::LookUp => {
                out.push(Action::CallProvider { op, call: ProviderCall::LookUp { identity: slot() } });
                operation.wait_until = patient;
            }
            Step::CallProvider => {
                out.push(Action::CallProvider { op, call: self.call(operation) });
                operation.wait_until = patient;
            }
        }
        Progress::Waits
    }

    /// Whoever was first stays: a map that is written over would forget which execution was answered.
    fn put_in_map(&mut self, operation: &mut Operation) -> Progress {
        let Record { slot, receipt } = self.record(operation);
        self.map.entry(slot).or_insert(receipt);
        Progress::Done
    }

    /// One write at the owner. A key that is older than a replaced disk may have been executed on the old one.
    fn begin_execute(&self, op: OpId, operation: &Operation, out: &mut Vec<Action>) -> Progress {
        if self.forgot(operation) {
            return Progress::Over(Outcome::Unknown(Unknown::OlderThanDisk));
        }
        out.push(Action::Disk { op, command: DiskCommand::Execute(self.execution(operation)) });
        Progress::Waits
    }

    /// One write at the keeper, under the epoch that this replica holds.
    fn begin_at_keeper(&self, now: Millis, op: OpId, operation: &mut Operation, out: &mut Vec<Action>) -> Progress {
        if self.fence.is_none() {
            return operation.failed(true, Refused::NoEpoch, Unknown::NotRecorded);
        }
        let execution = self.execution(operation);
        if self.knobs.owner != self.me {
            out.push(Action::Send { op, to: self.knobs.owner, message: Message::ExecuteAtKeeper(execution) });
            operation.wait_until = Some(now.plus(self.patience.answer_ms));
            return Progress::Waits;
        }
        if self.forgot(operation) {
            return Progress::Over(Outcome::Unknown(Unknown::OlderThanDisk));
        }
        match self.refused_fence(&execution) {
            Some(Executed::Stale { newest, .. }) => {
                operation.failed(true, Refused::Stale { newest }, Unknown::NotRecorded)
            }
            Some(_) | None => {
                out.push(Action::Disk { op, command: DiskCommand::Execute(execution) });
                Progress::Waits
            }
        }
    }

    fn forgot(&self, operation: &Operation) -> bool {
        self.disk.as_ref().is_some_and(|disk| disk.may_have_forgotten(operation.request.minted_at))
    }

    /// An epoch that another disk gave out is none, whatever its number: a new disk counts from the beginning.
    pub(super) fn refused_fence(&self, execution: &Execution) -> Option<Executed> {
        let fence = execution.fence.as_ref()?;
        let mine = self.disk.as_ref().is_some_and(|disk| disk.incarnation == fence.keeper);
        let newest = Epoch::default();
        (!mine).then_some(Executed::Stale { newest, receipt: None })
    }

    fn row(&self, operation: &Operation) -> EffectRow {
        let request = &operation.request;
        EffectRow {
            intent: request.intent.clone(),
            key: request.key.clone(),
            amount: request.amount,
            attempt: request.attempt,
            by: Endpoint::Replica(self.me),
        }
    }

    fn record(&self, operation: &mut Operation) -> Record {
        let receipt = operation.receipt.get_or_insert_with(|| self.receipt(&operation.request));
        Record { slot: operation.slot.clone(), receipt: receipt.clone() }
    }

    fn execution(&self, operation: &Operation) -> Execution {
        let fenced = self.knobs.placement == Placement::AtomicFenced;
        Execution {
            slot: operation.slot.clone(),
            request: operation.request.clone(),
            compares_amounts: self.knobs.compares_amounts(),
            row: (self.knobs.effect == EffectPlace::Inside).then(|| self.row(operation)),
            by: Endpoint::Replica(self.me),
            fence: self.fence.clone().filter(|_| fenced),
        }
    }

    /// A call of the provider. Placement `provider` hands over the identity always: that is what it is.
    fn call(&self, operation: &Operation) -> ProviderCall {
        let given = match (self.knobs.placement, self.knobs.provider) {
            (Placement::Provider, ProviderIdentity::None) => ProviderIdentity::Key,
            (_, given) => given,
        };
        ProviderCall::Pay {
            row: self.row(operation),
            identity: (given != ProviderIdentity::None).then(|| operation.slot.clone()),
            compares_amounts: self.knobs.compares_amounts(),
            deduplicate: given == ProviderIdentity::Key,
        }
    }
}
