package main

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// idle is a job with one task on each rank that prints a line and then waits. A task that receives HUP prints that and
// exits with 5, and one that receives TERM exits with 6. Tasks of a killed broker are orphans, and end when the
// directory of the test is removed.
func (in *instance) idle(ranks string) []string {
	return []string{"flux", "run", "-N" + ranks, "-n" + ranks, "--", "sh", "-c",
		`trap 'echo "hup $FLUX_TASK_RANK"; exit 5' HUP; trap 'echo "term $FLUX_TASK_RANK"; exit 6' TERM
		echo "at work $FLUX_TASK_RANK"; while test -d ` + in.path(".") + `; do sleep 1; done & wait`}
}

// awaitWork waits until each task of such a job runs.
func awaitWork(t *testing.T, leader *process, tasks int) {
	t.Helper()
	for task := range tasks {
		leader.await(t, &leader.stdout, `at work `+string(rune('0'+task)))
	}
}

// This is why the entrypoint is needed: a leader that receives TERM before the quorum exits with 0, as if the command
// had succeeded. So does a follower that has joined; one that has not joined exits with 1.
func TestTermBeforeQuorum(t *testing.T) {
	in := newInstance(t, 3)
	leader := in.start(t, 0, "sh", "-c", "echo started")
	leader.await(t, &leader.stderr, `quorum delayed: waiting for demo-\[1-2\] \(rank 1-2\)`)
	joined := in.start(t, 1)
	leader.await(t, &leader.stderr, `quorum delayed: waiting for demo-2 \(rank 2\)`)
	joined.signal(t, syscall.SIGTERM)
	joined.expectExit(t, 0)
	leader.await(t, &leader.stderr, `(?s)waiting for demo-2 .*waiting for demo-\[1-2\]`)
	again := in.start(t, 1)
	leader.await(t, &leader.stderr, `(?s)waiting for demo-2 .*waiting for demo-\[1-2\].*waiting for demo-2 `)

	leader.signal(t, syscall.SIGTERM)
	leader.expectExit(t, 0)
	again.expectExit(t, 0)
	if leader.stdout.String() != "" {
		t.Errorf("the command was started: %q", &leader.stdout)
	}

	alone := in.start(t, 1)
	alone.expectAlive(t, 3*time.Second)
	alone.signal(t, syscall.SIGTERM)
	alone.expectExit(t, 1)
}

// With another valid certificate a rank never joins. The only log message is that it is missing.
func TestWrongCertificate(t *testing.T) {
	in := newInstance(t, 3)
	leader := in.start(t, 0, "sh", "-c", "echo started")
	in.start(t, 2)
	in.write(t, "other.cert", newCertificate(t))
	in.write(t, "other.toml", strings.Replace(in.read(t, "broker.toml"), "curve.cert", "other.cert", 1))
	other := start(t, append(in.args(1), "--config-path="+in.path("other.toml"))...)
	leader.await(t, &leader.stderr, `quorum delayed: waiting for demo-1 \(rank 1\)`)
	other.expectAlive(t, 3*time.Second)
	leader.expectAlive(t, 0)
	if leader.stdout.String() != "" {
		t.Errorf("the command was started without rank 1: %q", &leader.stdout)
	}

	other.signal(t, syscall.SIGKILL)
	other.expectExit(t, 128+9)
	in.start(t, 1)
	leader.expectExit(t, 0)
	leader.await(t, &leader.stdout, `started`)
	leader.await(t, &leader.stderr, `quorum reached`)
}

// The quorum may be less than all ranks. A late rank is used once it has joined.
func TestLateRank(t *testing.T) {
	in := newInstance(t, 3)
	in.settings = append(in.settings, "-Sbroker.quorum=2")
	leader := in.start(t, 0, "sh", "-c",
		"flux run -N2 -n2 sh -c 'echo two $FLUX_TASK_RANK'; flux run -N3 -n3 sh -c 'echo three $FLUX_TASK_RANK'")
	second := in.start(t, 1)
	leader.await(t, &leader.stdout, `two 1`)
	leader.expectAlive(t, 500*time.Millisecond)
	third := in.start(t, 2)
	for _, broker := range []*process{leader, second, third} {
		broker.expectExit(t, 0)
	}
	leader.await(t, &leader.stdout, `three 2`)
}

// A leader that receives TERM sends HUP to the tasks.
func TestTermOnLeader(t *testing.T) {
	in := newInstance(t, 2)
	brokers := in.startAll(t, in.idle("2")...)
	awaitWork(t, brokers[0], 2)
	brokers[0].signal(t, syscall.SIGTERM)
	brokers[0].expectExit(t, 5)
	brokers[0].await(t, &brokers[0].stdout, `hup 0`)
	brokers[0].await(t, &brokers[0].stdout, `hup 1`)
	brokers[1].expectExit(t, 0)

	plain := newInstance(t, 1).start(t, 0, "sh", "-c", "echo at work 0; exec sleep 300")
	awaitWork(t, plain, 1)
	plain.signal(t, syscall.SIGTERM)
	plain.expectExit(t, 128+1)

	content := newInstance(t, 1).start(t, 0, "sh", "-c", "trap 'exit 0' HUP; echo at work 0; sleep 300 & wait")
	awaitWork(t, content, 1)
	content.signal(t, syscall.SIGTERM)
	content.expectExit(t, 1)
}

// A follower that receives TERM exits with 0; the job that has tasks on it ends.
func TestTermOnFollower(t *testing.T) {
	in := newInstance(t, 3)
	brokers := in.startAll(t, in.idle("3")...)
	awaitWork(t, brokers[0], 3)
	brokers[1].signal(t, syscall.SIGTERM)
	brokers[1].expectExit(t, 0)
	brokers[0].expectExit(t, 6)
	brokers[0].await(t, &brokers[0].stderr, `dead to Flux: demo-1 \(rank 1\)`)
	brokers[0].await(t, &brokers[0].stderr, `job.exception .* type=exec severity=0`)
	brokers[2].expectExit(t, 0)
}

// The same for a follower that is killed; tasks that ignore signals are killed in the end. The tasks of the killed
// broker are orphans, and end when the directory of this test is removed.
func TestKilledFollower(t *testing.T) {
	in := newInstance(t, 3)
	brokers := in.startAll(t, "flux", "run", "-N3", "-n3", "--", "sh", "-c",
		`trap '' TERM HUP; echo "at work $FLUX_TASK_RANK"; while test -d `+in.path(".")+`; do sleep 1; done`)
	awaitWork(t, brokers[0], 3)
	brokers[1].signal(t, syscall.SIGKILL)
	brokers[0].await(t, &brokers[0].stderr, `demo-1 \(rank 1\) failed`)
	brokers[0].await(t, &brokers[0].stderr, `node failure on demo-1 \(rank 1\)`)
	brokers[0].expectExit(t, 128+9)
	brokers[2].expectExit(t, 0)
}

// A job that has no tasks on a lost rank continues.
func TestLostRankWithoutTasks(t *testing.T) {
	in := newInstance(t, 3)
	brokers := in.startAll(t, "flux", "run", "-N2", "-n2", "--", "sh", "-c",
		`echo "at work $FLUX_TASK_RANK"; while ! test -e `+in.path("go")+`; do sleep 0.1; done`)
	awaitWork(t, brokers[0], 2)
	brokers[2].signal(t, syscall.SIGTERM)
	brokers[2].expectExit(t, 0)
	brokers[0].await(t, &brokers[0].stderr, `dead to Flux: demo-2 \(rank 2\)`)
	in.write(t, "go", "")
	brokers[0].expectExit(t, 0)
}

// Followers of a killed leader end neither by themselves nor on a signal.
func TestKilledLeader(t *testing.T) {
	in := newInstance(t, 2)
	brokers := in.startAll(t, in.idle("2")...)
	awaitWork(t, brokers[0], 2)
	brokers[0].signal(t, syscall.SIGKILL)
	brokers[0].expectExit(t, 128+9)
	brokers[1].expectAlive(t, time.Second)
	brokers[1].signal(t, syscall.SIGTERM)
	brokers[1].expectAlive(t, 2*time.Second)
}

// A follower that does not respond delays the end of the leader for the shutdown timeout, and not longer.
func TestShutdownTimeout(t *testing.T) {
	in := newInstance(t, 2)
	in.settings = []string{"-Sbroker.shutdown-timeout=1s"}
	leader := in.start(t, 0, "sh", "-c", "echo at work 0; while ! test -e "+in.path("go")+"; do sleep 0.1; done; exit 4")
	follower := in.start(t, 1)
	awaitWork(t, leader, 1)
	follower.signal(t, syscall.SIGSTOP)
	in.write(t, "go", "")
	leader.expectExit(t, 4)
	leader.await(t, &leader.stderr, `shutdown timeout`)
}

// Jobs that the initial program leaves running end with it.
func TestJobsLeftBehind(t *testing.T) {
	in := newInstance(t, 2)
	brokers := in.startAll(t, "sh", "-c", `flux run -N2 -n2 sh -c 'echo "at work $FLUX_TASK_RANK"; exec sleep 300' &
		while ! test -e `+in.path("go")+`; do sleep 0.1; done; exit 4`)
	awaitWork(t, brokers[0], 2)
	in.write(t, "go", "")
	brokers[0].expectExit(t, 4)
	brokers[1].expectExit(t, 0)
}

// The same before the quorum.
func TestKilledLeaderBeforeQuorum(t *testing.T) {
	in := newInstance(t, 3)
	leader := in.start(t, 0, "true")
	follower := in.start(t, 1)
	leader.await(t, &leader.stderr, `quorum delayed: waiting for demo-2 \(rank 2\)`)
	leader.signal(t, syscall.SIGKILL)
	leader.expectExit(t, 128+9)
	follower.expectAlive(t, time.Second)
	follower.signal(t, syscall.SIGTERM)
	follower.expectAlive(t, 2*time.Second)
}
