//! What a run makes of commands that runners run: the ticket that the executed text carried, starts that came with the
//! ruling, and why a declared fact is not met.

use interlock_core::Digest;
use interlock_core::action::{LineToRun, StartAsked};
use interlock_core::workflow::{
    CallBegun, CallEnded, Carried, ExecBegun, ExecTicket, OpenCall, Position, Run, Unseen, Workflow, begin_call,
    begin_exec, end_call, end_exec, end_turn, ways_out, why_unmet,
};
use interlock_workflow::{Format, Limits, load};

const FLOW: &str = r#"{"id":"fix","initial":"work",
    "facts":{"tests":{"command":"make test"}},
    "guards":{"passed":{"field":"observed.tests","op":"eq","value":0,"source":"observed"},
              "planned":{"field":"plan","op":"exists"}},
    "states":{"work":{"on":{"DONE":{"target":"done","guards":["passed","planned"]}}},"done":{"type":"final"}}}"#;

/// A run, and calls of it by their numbers.
struct World {
    workflow: Workflow,
    run: Run,
}

fn text(number: u64) -> String {
    format!("dec_{number}")
}

impl World {
    fn new() -> World {
        let workflow = load(FLOW, Format::Json, &Limits::MAX).unwrap_or_else(|found| panic!("{found:?}")).workflow;
        let position = Position::start(&workflow, "run_1".to_owned(), 1, None);
        World { workflow, run: Run { position: Some(position), ..Run::default() } }
    }

    fn runs() -> LineToRun {
        LineToRun { line: Digest::of(&["line"]), directory: Digest::of(&["directory"]) }
    }

    /// A call that is let run; `held` is the profile of its ticket, and whether its host runs nothing without one.
    fn call(&mut self, number: u64, call_id: &str, fact: bool, held: Option<(&str, bool)>) {
        self.unseen(number, call_id, fact, held, None);
    }

    fn unseen(&mut self, number: u64, call_id: &str, fact: bool, held: Option<(&str, bool)>, why: Option<Unseen>) {
        let ticket = held.map(|(profile, is_held)| ExecTicket {
            decision_id: text(number),
            runs: World::runs(),
            profile: Some(profile.to_owned()).filter(|name| !name.is_empty()),
            is_held,
        });
        let open = OpenCall {
            ticket,
            gist: None,
            call_id: Some(call_id.to_owned()),
            process: Digest::of(&["process"]),
            subagent: None,
            fingerprint: Digest::of(&["line"]),
            decision: number,
            at: 1,
            changes: !fact,
            left: false,
            foreign: false,
            fact: fact.then(|| ("tests".to_owned(), 0)),
        };
        let unseen = why.map(|why| ("tests".to_owned(), why));
        let begun = CallBegun { open, files: Vec::new(), session: "s".to_owned(), unseen };
        begin_call(&mut self.run, Some(&self.workflow), begun);
    }

    fn start(&mut self, number: u64, exec_id: &str, by_hook: bool, foreign: bool) {
        let LineToRun { line, directory } = World::runs();
        let decision_id = text(number);
        let asked = StartAsked { decision_id: &decision_id, line, directory };
        begin_exec(&mut self.run, &ExecBegun { asked, exec_id, foreign, by_hook, at: 2 });
    }

    fn end(&mut self, call_id: &str, carried: Option<Carried>) -> Result<(), &'static str> {
        let ended = CallEnded {
            tells_how: false,
            carried,
            call_id: Some(call_id),
            process: Digest::of(&["process"]),
            fingerprint: Digest::of(&["line"]),
            tool: "Bash",
            is_command: true,
            ok: None,
            exit_code: None,
            result: None,
            files: &[],
        };
        end_call(&mut self.run, &ended)
    }

    /// Why the fact is not met, in one line; nothing if it is.
    fn why(&self) -> Option<String> {
        let [way] = ways_out(&self.workflow, &self.run).try_into().expect("one way out");
        assert_eq!(way.why, why_unmet(&self.workflow, &self.run, &way.unmet));
        assert!(way.unmet.contains(&"planned".to_owned()));
        assert_eq!(way.unmet.contains(&"passed".to_owned()), !way.why.is_empty());
        assert!(way.why.len() < 2, "{:?}", way.why);
        way.why.into_iter().next()
    }

    fn is_why(&self, words: &str) {
        assert_eq!(self.why().as_deref(), Some(&*format!("`make test` {words}")));
    }
}

#[test]
fn what_was_executed_is_what_was_rewritten() {
    let other = "what was executed is not what was judged";
    for (held, carried, ends) in [
        (Some(("project", false)), Some(Carried::Of(7)), Ok(())),
        (Some(("project", false)), Some(Carried::Of(6)), Err(other)),
        (Some(("project", false)), Some(Carried::Unknown), Err(other)),
        // A line that was to be held ran as it was.
        (Some(("project", false)), Some(Carried::Nothing), Err(other)),
        // Where nothing runs without a ticket, it did not run; and what nothing was to hold ran as it was let.
        (Some(("project", true)), Some(Carried::Nothing), Ok(())),
        (Some(("", false)), Some(Carried::Nothing), Ok(())),
        (Some(("", false)), Some(Carried::Of(6)), Err(other)),
        (None, Some(Carried::Nothing), Ok(())),
        (None, Some(Carried::Unknown), Err(other)),
        // A host that carries none.
        (Some(("project", false)), None, Ok(())),
    ] {
        let mut world = World::new();
        world.call(7, "a", false, held);
        assert_eq!(world.end("a", carried), ends, "{held:?} {carried:?}");
        assert_eq!(world.run.open.is_empty(), ends.is_ok());
    }
    // Asked twice about one call, a host runs it as it was told last; spent or not.
    let mut world = World::new();
    world.call(7, "a", false, Some(("project", false)));
    world.call(8, "a", false, Some(("project", false)));
    world.start(8, "exec_1", false, false);
    assert_eq!(world.end("a", Some(Carried::Of(8))), Ok(()));
    assert_eq!(world.run.open.iter().map(|open| open.decision).collect::<Vec<_>>(), [7]);
}

#[test]
fn a_start_with_the_ruling_ends_as_its_runner_tells_or_with_its_call() {
    let mut world = World::new();
    world.is_why("has not been run yet");
    world.call(7, "a", true, Some(("project", false)));
    world.start(7, "exec_1", true, false);
    world.is_why("has not ended yet");
    assert!(world.run.open[0].ticket.is_some(), "a runner that can ask still may");
    end_exec(&mut world.run, "exec_1", Some(2), None);
    assert_eq!(world.end("a", Some(Carried::Of(7))), Ok(()));
    world.is_why("ended with code 2");
    // Nobody told: it ends with its call, and stands in nobody's way.
    world.call(8, "b", true, Some(("project", false)));
    world.start(8, "exec_2", true, false);
    assert_eq!(world.end("b", Some(Carried::Of(8))), Ok(()));
    assert!(world.run.execs.is_empty());
    world.is_why("ended with code 2");
    // A runner that can ask takes its place.
    world.call(9, "c", true, Some(("project", false)));
    world.start(9, "exec_3", true, false);
    world.start(9, "exec_4", false, false);
    assert_eq!(world.run.execs.iter().map(|exec| exec.exec_id.as_str()).collect::<Vec<_>>(), ["exec_4"]);
    assert!(world.run.open[0].ticket.is_none());
    end_exec(&mut world.run, "exec_3", Some(1), None);
    end_exec(&mut world.run, "exec_4", Some(0), None);
    assert_eq!(world.why(), None);
    // Another start whose turn is over stands in no fact's way, and is none.
    assert_eq!(world.end("c", Some(Carried::Of(9))), Ok(()));
    world.call(10, "d", false, Some(("project", false)));
    world.start(10, "exec_5", true, false);
    end_turn(&mut world.run, |_| true);
    world.call(11, "e", true, Some(("project", false)));
    world.start(11, "exec_6", true, false);
    end_exec(&mut world.run, "exec_6", Some(0), None);
    assert_eq!(world.why(), None);
}

#[test]
fn a_fact_that_is_not_met_says_why() {
    let mut world = World::new();
    world.call(1, "a", true, Some(("project", true)));
    world.start(1, "exec_1", false, false);
    end_exec(&mut world.run, "exec_1", Some(0), None);
    assert_eq!((world.why(), world.end("a", None)), (None, Ok(())));
    world.call(2, "b", false, None);
    world.is_why("was run, but something was written since");
    world.call(3, "c", true, Some(("project", true)));
    world.is_why("was run, but something was written meanwhile");
    assert_eq!((world.end("b", None), world.end("c", None)), (Ok(()), Ok(())));
    for (why, words) in [
        (Unseen::Script, "runs another script now than when the run began"),
        (Unseen::NoRunner, "was run, but without a runner: nobody observed how it ended"),
        (Unseen::Foreign, "was not run by the host itself, so it was not observed"),
    ] {
        world.unseen(4, "d", false, None, Some(why));
        assert_eq!(world.end("d", None), Ok(()));
        world.is_why(words);
    }
    world.call(5, "e", true, Some(("project", true)));
    world.start(5, "exec_2", false, true);
    world.is_why("was not run by the host itself, so it was not observed");
    assert_eq!(world.end("e", None), Ok(()));
    world.call(6, "f", true, Some(("project", true)));
    world.start(6, "exec_3", false, false);
    end_exec(&mut world.run, "exec_3", None, None);
    world.is_why("was run, but its runner did not tell how it ended");
    assert_eq!(world.end("f", None), Ok(()));
    world.call(7, "g", true, Some(("project", false)));
    assert_eq!(world.end("g", Some(Carried::Of(7))), Ok(()));
    world.is_why("was run, but without a runner: nobody observed how it ended");
    world.call(8, "h", true, Some(("project", true)));
    end_turn(&mut world.run, |_| true);
    world.is_why("had not ended when its turn was over");
    assert_eq!(world.end("h", None), Ok(()));
    world.call(9, "i", true, Some(("project", true)));
    world.start(9, "exec_4", false, false);
    end_exec(&mut world.run, "exec_4", None, Some(9));
    world.is_why("ended with code 137");
    // Guards on anything else have nothing to say.
    assert_eq!(why_unmet(&world.workflow, &world.run, &["planned".to_owned(), "no such".to_owned()]), [""; 0]);
}
