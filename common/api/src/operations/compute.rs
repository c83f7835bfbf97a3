//! Goals: what their owners read of them, and what they do with them.

use base::input::{Field, Kind};
use tools_compute::control::{FUNDS, REASON, RESPONSE};

use super::shape::{Member, Named, Shape, has};
use super::shared::OK;
use super::{Answer, Auth, Body, Operation};

const STATUS: &[&str] = &["active", "completed", "cancelled", "failed"];
const TASK_STATUS: &[&str] = &["pending", "running", "waiting", "completed", "failed"];

static PLANNED: &[Member] = &[
    has("task_id", Shape::Text),
    has("tool", Shape::OrNull(&Shape::Text)),
    has("description", Shape::Text),
    has("reason", Shape::Text),
    has("phase", Shape::Integer),
    has("needs", Shape::List(&Shape::Text)).about("The tasks that have to end first"),
];

static BUDGET_OF_GOAL: &[Member] = &[
    has("total", Shape::Number),
    has("spent", Shape::Number),
    has("reserved", Shape::Number).about("Taken by calls that go on"),
    has("remaining", Shape::Number),
];

/// A goal.
pub static GOAL: Named = Named {
    name: "Goal",
    about: "An objective, its plan, and what it has spent.",
    shape: Shape::Object(&[
        has("id", Shape::Text),
        has("request_id", Shape::Uuid).about("Its job: /v1/requests/{request_id} works too"),
        has("status", Shape::Choice(STATUS)),
        has(
            "phase_status",
            Shape::Choice(&["pending", "executing", "waiting", "settling", "completed", "cancelled", "failed"]),
        ),
        has("name", Shape::Text),
        has("objective", Shape::Text),
        has("current_phase", Shape::OrNull(&Shape::Integer)),
        has("plan", Shape::List(&Shape::Object(PLANNED))),
        has("budget", Shape::Object(BUDGET_OF_GOAL)),
        has("budget_usdc", Shape::Usdc),
        has("spent_usdc", Shape::Usdc),
        has("progress_percent", Shape::Integer),
        has("result", Shape::OrNull(&Shape::Map(&Shape::Any))),
        has("end_reason", Shape::OrNull(&Shape::Text)),
        has("deadline", Shape::Time),
        has("created_at", Shape::Time),
        has("started_at", Shape::OrNull(&Shape::Time)),
        has("completed_at", Shape::OrNull(&Shape::Time)),
    ]),
};

/// A goal in a list.
pub static BRIEF: Named = Named {
    name: "GoalInList",
    about: "An objective, and what it has spent.",
    shape: Shape::Object(&[
        has("id", Shape::Text),
        has("request_id", Shape::Uuid),
        has("status", Shape::Choice(STATUS)),
        has("name", Shape::Text),
        has("objective", Shape::Text),
        has("budget", Shape::Object(BUDGET_OF_GOAL)),
        has("budget_usdc", Shape::Usdc),
        has("spent_usdc", Shape::Usdc),
        has("end_reason", Shape::OrNull(&Shape::Text)),
        has("deadline", Shape::Time),
        has("created_at", Shape::Time),
        has("completed_at", Shape::OrNull(&Shape::Time)),
    ]),
};

static ERROR: &[Member] = &[has("code", Shape::Text), has("message", Shape::Text)];

/// A task of a goal.
pub static TASK: Named = Named {
    name: "GoalTask",
    about: "A call of a goal, or a question to its owner.",
    shape: Shape::Object(&[
        has("id", Shape::Text),
        has("goal_id", Shape::Text),
        has("task_type", Shape::Choice(&["tool_call", "human_approval"])),
        has("tool", Shape::OrNull(&Shape::Text)),
        has("description", Shape::Text),
        has("reason", Shape::Text),
        has("status", Shape::Choice(TASK_STATUS)),
        has("phase", Shape::Integer),
        has("sequence", Shape::Integer),
        has("progress_pct", Shape::Integer),
        has("progress_message", Shape::OrNull(&Shape::Text)),
        has("request_id", Shape::OrNull(&Shape::Uuid)),
        has("attempts", Shape::Integer),
        has("question", Shape::OrNull(&Shape::Text)).about("What respond has to answer"),
        has("approval_id", Shape::OrNull(&Shape::Text)).about("The approval that your action policy asked for"),
        has("answer", Shape::Any),
        has("error", Shape::OrNull(&Shape::Object(ERROR))),
        has("quoted_usdc", Shape::OrNull(&Shape::Number)),
        has("actual_usdc", Shape::OrNull(&Shape::Number)),
        has("cost_usdc", Shape::OrNull(&Shape::Usdc)),
        has("created_at", Shape::Time),
        has("started_at", Shape::OrNull(&Shape::Time)),
        has("completed_at", Shape::OrNull(&Shape::Time)),
    ]),
};

static ENTRY: &[Member] = &[
    has("category", Shape::OrNull(&Shape::Text)).about("Of the receipts, or platform_fee"),
    has("tool", Shape::OrNull(&Shape::Text)),
    has("amount_usdc", Shape::Number),
    has("description", Shape::Text),
    has("created_at", Shape::Time),
];

static BUDGET: &[Member] = &[
    has("budgetId", Shape::Text),
    has("goalId", Shape::Text),
    has("goal_id", Shape::Text),
    has("totalBudgetUsdc", Shape::Number),
    has("total_usdc", Shape::Usdc),
    has("spentUsdc", Shape::Number),
    has("spent_usdc", Shape::Usdc),
    has("reservedUsdc", Shape::Number),
    has("reserved_usdc", Shape::Usdc),
    has("remainingUsdc", Shape::Number),
    has("remaining_usdc", Shape::Usdc),
    has("spend_entries", Shape::List(&Shape::Object(ENTRY))),
];

static OUTPUT: &[Member] = &[
    has("key", Shape::Text),
    has("kind", Shape::Choice(&["result"])),
    has("content_type", Shape::Text),
    has("task_id", Shape::Text),
    has("tool", Shape::OrNull(&Shape::Text)),
    has("request_id", Shape::Uuid),
    has("readable", Shape::Bool),
    has("created_at", Shape::OrNull(&Shape::Time)),
];

static CONTENT: &[Member] = &[
    has("key", Shape::Text),
    has("kind", Shape::Choice(&["result"])),
    has("content_type", Shape::Text),
    has("size", Shape::Integer),
    has("readable", Shape::Bool).about("false: too long for this answer; read it at /v1/requests/{request_id}"),
    has("content", Shape::Any),
    has("request_id", Shape::Uuid),
];

static CANCELLED: &[Member] = &[
    has("goal_id", Shape::Text),
    has("status", Shape::Choice(&["cancelled", "pending_settlement"])),
    has("remaining_budget", Shape::Number),
    has("message", Shape::Text),
];

/// Of a goal with a schedule.
static RECURRING: &[Member] = &[
    has("goal_id", Shape::Text),
    has("status", Shape::Choice(&["active", "paused"])),
    has("run_count", Shape::Integer),
];

static ANSWERED: &[Member] = &[
    has("task_id", Shape::Text),
    has("goal_id", Shape::Text),
    has("task_status", Shape::Choice(&["completed", "failed"])),
    has("orchestrator_action", Shape::Choice(&["continue_execution"])),
];

/// `{"success": true, "data": …}`
macro_rules! data {
    ($shape:expr) => {
        Shape::Object(&[OK, has("data", $shape)])
    };
}

pub static OPERATIONS: &[Operation] = &[
    Operation::get("/v1/compute", "listGoals", "Your goals, newest first")
        .auth(Auth::Agent)
        .query(&[
            Field::optional("status", Kind::Choice(STATUS), "Only those with this status"),
            Field::optional("limit", Kind::Integer { min: 1, max: 50 }, "At most this many; default 20"),
        ])
        .answers(&[Answer::ok("Goals", data!(Shape::Object(&[has("goals", Shape::List(&Shape::Ref(&BRIEF)))])))]),
    Operation::get("/v1/compute/{id}", "getGoal", "One goal: its plan, state, spending and result")
        .auth(Auth::Agent)
        .answers(&[Answer::ok("The goal", data!(Shape::Ref(&GOAL)))])
        .refuses(&[(404, "goal_not_found")]),
    Operation::get("/v1/compute/{id}/tasks", "listGoalTasks", "The tasks of a goal")
        .auth(Auth::Agent)
        .query(&[
            Field::optional("status", Kind::Choice(TASK_STATUS), "Only those with this status"),
            Field::optional("limit", Kind::Integer { min: 1, max: 200 }, "At most this many; default: all"),
        ])
        .answers(&[Answer::ok("Tasks", data!(Shape::List(&Shape::Ref(&TASK))))])
        .refuses(&[(404, "goal_not_found")]),
    Operation::get("/v1/compute/{id}/budget", "getGoalBudget", "What a goal may spend, has spent, and on what")
        .auth(Auth::Agent)
        .answers(&[Answer::ok("The budget", data!(Shape::Object(BUDGET)))])
        .refuses(&[(404, "goal_not_found")]),
    Operation::get("/v1/compute/{id}/outputs", "listGoalOutputs", "What the calls of a goal returned")
        .auth(Auth::Agent)
        .answers(&[Answer::ok("Outputs", data!(Shape::Object(&[has("outputs", Shape::List(&Shape::Object(OUTPUT)))])))])
        .refuses(&[(404, "goal_not_found")]),
    Operation::get("/v1/compute/{id}/outputs/{key}", "getGoalOutput", "One output of a goal")
        .auth(Auth::Agent)
        .answers(&[Answer::ok("The output", data!(Shape::Object(CONTENT)))])
        .refuses(&[(404, "goal_not_found"), (404, "output_not_found"), (410, "result_expired")]),
    Operation::post("/v1/compute/{id}/cancel", "cancelGoal", "Buys nothing new; what is left comes back with its fee")
        .auth(Auth::Agent)
        .body(Body::Fields(REASON))
        .answers(&[
            Answer::ok("Cancelled", data!(Shape::Object(CANCELLED))),
            Answer::json(202, "Calls that were bought already end first", data!(Shape::Object(CANCELLED))),
        ])
        .refuses(&[(404, "goal_not_found"), (409, "invalid_state")]),
    Operation::post("/v1/compute/{id}/pause", "pauseGoal", "For recurring goals, which are not sold here yet")
        .auth(Auth::Agent)
        .body(Body::Fields(REASON))
        .answers(&[Answer::ok("The goal", data!(Shape::Object(RECURRING)))])
        .refuses(&[(400, "not_recurring"), (404, "goal_not_found")]),
    Operation::post("/v1/compute/{id}/resume", "resumeGoal", "For recurring goals, which are not sold here yet")
        .auth(Auth::Agent)
        .body(Body::Fields(REASON))
        .answers(&[Answer::ok("The goal", data!(Shape::Object(RECURRING)))])
        .refuses(&[(400, "not_recurring"), (404, "goal_not_found")]),
    Operation::post("/v1/compute/{id}/respond", "respondToGoal", "Answers a task that waits for you")
        .beyond_schema("one of response, approved and confirm_done is needed")
        .auth(Auth::Agent)
        .body(Body::Fields(RESPONSE))
        .answers(&[Answer::ok("Answered", data!(Shape::Object(ANSWERED)))])
        .refuses(&[
            (400, "invalid_state"),
            (403, "approval_required"),
            (404, "goal_not_found"),
            (404, "task_not_found"),
            (409, "invalid_state"),
        ]),
    Operation::post("/v1/compute/{id}/fund", "fundGoal", "For recurring goals, which are not sold here yet")
        .auth(Auth::Agent)
        .body(Body::Fields(FUNDS))
        .answers(&[Answer::ok("The goal", data!(Shape::Object(RECURRING)))])
        .refuses(&[(400, "not_recurring"), (404, "goal_not_found")]),
];
