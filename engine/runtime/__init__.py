"""The interpreter: it computes the next step of an execution, as a pure function.

Theory of operation
===================

One pure function does all the work::

    advance(machine, run, message, moment) -> Step

* A **Machine** is a definition, parsed, checked and compiled (``engine.language``).
* A **Run** is a frozen snapshot of one execution: how far it has come. It holds its lines of
  control as **Frames**. An execution starts with one frame; each branch of a Parallel and each
  iteration of an inline Map is a frame of its own. The frames that were opened together are a
  *group*, and the frame that opened it, its owner, waits until the group is done.
* A **Message** is an event from outside: a start, a task's success, a timer. An execution changes
  only by messages.
* A **Moment** is the outside world at this time: the clock, a seed for everything random, the key
  of task tokens. The engine never asks the operating system for them.
* A **Step** is the result: the next Run, the **Events** to append to the history, and the
  **Commands** that the caller carries out, such as "run this task" or "set this timer".

How a step is computed. ``advance`` first checks whether the run expects the message. The outcome
of a task that no frame waits for any more is not expected: the step is then empty. Otherwise a
``Turn`` copies the maps of the run, the message wakes one frame, and the frame enters the ready
queue. The turn takes frames from the queue, in order, and lets each do the work of its state
(``engine.runtime.states``), until the queue is empty or the budget is spent. A state ends in one of
four ways:

* it leaves for the next state: ``flow.leave`` and ``flow.enter``;
* it waits: the frame gets a phase such as TASK or TIMER, and a command goes out;
* it opens a group, and the frame waits in the phase GROUP;
* it fails: ``recovery`` tries the Retriers, then the Catchers, then ends the line of control.

A task that is scheduled is *held* in the run: its ...Started event and its command come when no
frame is ready any more. If a sibling fails before, the call is not made, and no event says that it
started. A sibling that loops does not hold it for ever (``advance.HELD_EVENTS``).

A line of control that ended goes to ``groups.settle``, which joins the group, or ends the
execution. ``groups`` may use ``recovery``, and ``recovery`` may use ``flow``, never the other way;
nothing is recursive but the nesting of groups. When the budget is spent with frames still in the
queue, the step carries the command ``Proceed``, and the caller sends ``Continue``.

Breakpoints. A run may have a plan (``breakpoints``): places where a line of control stops. The loop
asks ``halts`` before the work of a state, ``flow.leave`` before it is left, ``recovery`` before an
error is handled; without a plan each of these is a comparison with None. A line that stops has the
phase BREAK, its siblings go on, and ``release`` lets it go on as a message says. Events stay as
they would be; what a person changed goes out as the command ``NoteEdit``.

Faults. A run may have faults (``faults``): errors and latency that take the place of calls. A Task,
Parallel or Map asks ``fault_strikes`` when it begins its work. Whether one strikes follows from the
seed of the faults and the number of the attempt, both in the run. A call that is held back leaves
its frame in the phase DELAY; an answer that is held back stays in the plan (``late``), and its
frame waits in the same phase. A strike goes out as a ``NoteEdit``, too.

Why it is deterministic. ``advance`` reads no clock, draws no random number and changes none of its
arguments: equal arguments give an equal step. A process may therefore die after computing a step
and before storing it; another process computes the same step from the stored run. Numbers of frames
and groups, names of timers and tokens of tasks come from counters in the run, so they are the same
again, and a duplicate of a message finds no frame that waits for it.

What is durable when. The engine stores nothing. The caller commits the run, the events, the kept
values, the message's removal from the inbox and the effects of the commands in one transaction, and
only then acts on the commands. So there are two cases: before the commit nothing has happened, and
after it a command may be carried out twice but is never lost.

What a step costs. A run holds the live lines of control, not the past. Long inputs, the items of a
Map and the outputs of finished iterations are *values*: written once under a key, read when needed,
and dropped with their group. The cost of a step depends on the number of states that it enters, not
on the length of the history.

A worked example. The machine has three states: the Pass ``Price``, the Task ``Charge``, and the
Succeed ``Done``. Each event names the event before it on its line of control in brackets::

    advance(machine, NEW_RUN, Start(input='{"n":7}', ...), moment)
        events    1 ExecutionStarted
                  2 PassStateEntered (0)          the first state points at 0, as on AWS
                  3 PassStateExited (2)
                  4 TaskStateEntered (3)
                  5 LambdaFunctionScheduled (4)
                  6 LambdaFunctionStarted (5)
        commands  RunTask(task=5, kind=LAMBDA, input='{"total":7}')
        run       frame 1: state Charge, phase TASK, waits_for 5, cursor 6

    advance(machine, run, TaskSucceeded(task=5, output='{"paid":true}'), moment)
        events    7 LambdaFunctionSucceeded (6)
                  8 TaskStateExited (7)
                  9 SucceedStateEntered (8)
                 10 SucceedStateExited (9)
                 11 ExecutionSucceeded (10)
        commands  Finish(status=SUCCEEDED, output='{"paid":true}')
        run       no frames, status SUCCEEDED

    advance(machine, run, TaskSucceeded(task=5, output='{"paid":true}'), moment)
        an empty step: the answer came twice, and the second one changes nothing

Where to read on: ``run`` (the snapshot), ``messages`` and ``commands`` (in and out), ``advance``
(the loop), ``turn`` (the workspace of a step), ``states`` (one module a state type).
"""
