package controller

import (
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// zero is the start of a test. It is in whole seconds, like the API server's timestamps.
var zero = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func second(n int) time.Time { return zero.Add(time.Duration(n) * time.Second) }

func terminated(exitCode int32, at int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { makeTerminated(pod, exitCode, "", second(at)) }
}

func because(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		state := pod.Status.ContainerStatuses[0].State.Terminated
		state.Reason, state.Message = reason, message
	}
}

// deleted is the second of the deletion request. The API server records when the grace period will end.
func deleted(at int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.DeletionTimestamp = new(metav1.NewTime(second(at + gracePeriodSeconds)))
		pod.DeletionGracePeriodSeconds = new(int64(gracePeriodSeconds))
	}
}

// doneWith simulates the kubelet's last deletion request, with a grace period of 0.
func doneWith(pod *corev1.Pod) { pod.DeletionGracePeriodSeconds = new(int64(0)) }

func failedAsAWhole(reason, message string, at int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: reason, Message: message, Conditions: []corev1.PodCondition{
			{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(second(at))},
		}}
	}
}

func TestEndOfPod(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		steps []func(*corev1.Pod)
		gone  bool
		// at is in seconds; -1 if the pod has not ended.
		at        int
		ended     bool
		deleted   bool
		exitCode  *int32
		unstarted bool
		story     string
	}{
		"runs":        {steps: []func(*corev1.Pod){makeReady}, at: -1},
		"has not run": {steps: []func(*corev1.Pod){waits("ErrImagePull", "")}, at: -1},
		"succeeded":   {steps: []func(*corev1.Pod){terminated(0, 5)}, at: 5, ended: true, exitCode: new(int32(0)), story: "ended with exit code 0"},
		"failed":      {steps: []func(*corev1.Pod){terminated(3, 5), because("Error", " the end \n")}, at: 5, ended: true, exitCode: new(int32(3)), story: "ended with exit code 3: the end"},
		"ran out of memory": {steps: []func(*corev1.Pod){terminated(137, 5), because("OOMKilled", "")}, at: 5, ended: true,
			exitCode: new(int32(137)), story: "ended with exit code 137 (OOMKilled)"},
		"deleted": {steps: []func(*corev1.Pod){makeReady, deleted(4)}, at: 4, deleted: true, story: "was lost, because it was deleted"},
		"ended because it was deleted": {steps: []func(*corev1.Pod){terminated(143, 5), deleted(4)}, at: 4, ended: true, deleted: true,
			exitCode: new(int32(143)), story: "ended with exit code 143, because it was deleted"},
		"ended, and deleted later": {steps: []func(*corev1.Pod){terminated(3, 3), deleted(4)}, at: 3, ended: true,
			exitCode: new(int32(3)), story: "ended with exit code 3"},
		"removed by the kubelet, with a new deletionTimestamp": {steps: []func(*corev1.Pod){terminated(143, 5), deleted(-4), doneWith}, at: 5, ended: true, deleted: true,
			exitCode: new(int32(143)), story: "ended with exit code 143, because it was deleted"},
		"deleted, and its end was not observed": {steps: []func(*corev1.Pod){makeReady, deleted(4)}, gone: true, at: 4, ended: true, deleted: true,
			story: "was lost, because it was deleted"},
		"the kubelet does not know": {steps: []func(*corev1.Pod){terminated(137, 5), because("ContainerStatusUnknown", "not located")}, at: 5, ended: true,
			story: "was lost (ContainerStatusUnknown): not located"},
		"its node started again": {steps: []func(*corev1.Pod){terminated(255, 5), because("Unknown", "as far as it got")}, at: 5, ended: true,
			story: "was lost (Unknown): as far as it got"},
		"the command's own 255": {steps: []func(*corev1.Pod){terminated(255, 5), because("Error", "")}, at: 5, ended: true,
			exitCode: new(int32(255)), story: "ended with exit code 255"},
		"did not start": {steps: []func(*corev1.Pod){terminated(128, 5), because("StartError", "no /bin/sh")}, at: 5, ended: true,
			exitCode: new(int32(128)), unstarted: true, story: "did not start (StartError): no /bin/sh"},
		"could not be run": {steps: []func(*corev1.Pod){terminated(127, 5), because("ContainerCannotRun", "no /bin/sh")}, at: 5, ended: true,
			exitCode: new(int32(127)), unstarted: true, story: "did not start (ContainerCannotRun): no /bin/sh"},
		"rejected by the kubelet": {steps: []func(*corev1.Pod){failedAsAWhole("OutOfcpu", "no room", 5)}, at: 5, ended: true,
			unstarted: true, story: "did not start (OutOfcpu): no room"},
		"evicted": {steps: []func(*corev1.Pod){failedAsAWhole("Evicted", "low on memory", 5)}, at: 5, ended: true,
			story: "was lost (Evicted): low on memory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			pod := rankPod("1", test.steps...)
			end := endOfPod(&pod, test.gone)
			if test.at < 0 {
				g.Expect(end).To(BeNil())
				return
			}
			g.Expect(end.at).To(BeTemporally("==", second(test.at)))
			g.Expect(end.ended).To(Equal(test.ended))
			g.Expect(!end.deleted.IsZero()).To(Equal(test.deleted))
			g.Expect(end.exitCode).To(Equal(test.exitCode))
			g.Expect(end.unstarted).To(Equal(test.unstarted))
			g.Expect(end.describe()).To(Equal("rank 1 (pod bees-1) " + test.story))
		})
	}
}

// The Job has failed at second 10.
func TestFirstToFail(t *testing.T) {
	t.Parallel()
	type steps = []func(*corev1.Pod)
	for name, test := range map[string]struct {
		leader, follower steps
		// order is what the watch has reported first: 0 the leader, 1 the follower; -1 if it did not report the ends.
		order int
		// rank is the rank whose end caused the others; -1 if that is not known.
		rank int32
	}{
		"the command fails":                                 {leader: steps{terminated(3, 9)}, rank: 0},
		"the command fails, and a follower is ended":        {leader: steps{terminated(3, 9)}, follower: steps{terminated(143, 11), deleted(10)}, order: -1, rank: 0},
		"the same, all in one second":                       {leader: steps{terminated(3, 10)}, follower: steps{terminated(143, 10), deleted(10)}, order: 0, rank: 0},
		"the leader is killed":                              {leader: steps{terminated(137, 8)}, follower: steps{terminated(137, 21), deleted(11)}, order: -1, rank: 0},
		"the leader is deleted":                             {leader: steps{terminated(129, 9), deleted(8)}, follower: steps{terminated(143, 11), deleted(10)}, order: -1, rank: 0},
		"the leader is deleted, all in one second":          {leader: steps{terminated(129, 10), deleted(10)}, follower: steps{terminated(143, 10), deleted(10)}, order: 0, rank: 0},
		"the leader is deleted, and followers end":          {leader: steps{terminated(129, 10), deleted(10)}, follower: steps{terminated(1, 10)}, order: 0, rank: 0},
		"a leader alone is deleted":                         {leader: steps{terminated(129, 10), deleted(10)}, order: 0, rank: 0},
		"the leader fails, followers after it":              {leader: steps{terminated(3, 7)}, follower: steps{terminated(1, 8)}, order: 1, rank: 0},
		"the same failure on all":                           {leader: steps{terminated(127, 9)}, follower: steps{terminated(127, 8)}, order: 1, rank: 0},
		"a follower is deleted":                             {leader: steps{terminated(143, 11), deleted(10)}, follower: steps{terminated(143, 9), deleted(8)}, order: -1, rank: 1},
		"a follower is deleted, all in one second":          {leader: steps{terminated(143, 10), deleted(10)}, follower: steps{terminated(143, 10), deleted(10)}, order: 1, rank: 1},
		"the same, and it was not watched":                  {leader: steps{terminated(143, 10), deleted(10)}, follower: steps{terminated(143, 10), deleted(10)}, order: -1, rank: -1},
		"a follower is deleted, its pod still exists":       {leader: steps{terminated(143, 11), deleted(10)}, follower: steps{makeReady, deleted(8)}, order: -1, rank: 1},
		"a follower is killed":                              {leader: steps{terminated(143, 9)}, follower: steps{terminated(137, 8)}, order: 0, rank: 1},
		"a follower is killed, in the same second":          {leader: steps{terminated(1, 9)}, follower: steps{terminated(137, 9)}, order: 0, rank: 1},
		"a follower is evicted":                             {leader: steps{terminated(143, 11), deleted(10)}, follower: steps{failedAsAWhole("Evicted", "", 8)}, order: -1, rank: 1},
		"both end by the same signal":                       {leader: steps{terminated(143, 9)}, follower: steps{terminated(143, 9), deleted(8)}, order: 1, rank: 1},
		"a follower is deleted, and ends with 0":            {leader: steps{terminated(129, 11), deleted(10)}, follower: steps{terminated(0, 11), deleted(10)}, order: 1, rank: 1},
		"the same, and the leader was not observed":         {follower: steps{terminated(0, 11), deleted(10)}, order: 1, rank: 1},
		"the command fails, a follower is deleted before":   {leader: steps{terminated(3, 9)}, follower: steps{terminated(0, 9), deleted(8)}, order: 1, rank: 0},
		"the command fails, followers are deleted after it": {leader: steps{terminated(3, 9)}, follower: steps{terminated(0, 11), deleted(10)}, order: 0, rank: 0},
		"the leader is deleted, and followers end with 0":   {leader: steps{terminated(129, 11), deleted(10)}, follower: steps{terminated(0, 11), deleted(10)}, order: 0, rank: 0},
		"the command succeeds, and a follower not":          {leader: steps{terminated(0, 8)}, follower: steps{terminated(1, 9)}, rank: 1},
		"the command succeeds, and why was not observed":    {leader: steps{terminated(0, 8)}, rank: -1},
		"a follower fails, and the leader was not observed": {follower: steps{terminated(1, 9)}, order: -1, rank: 1},
		"nothing was observed":                              {rank: -1},
		"all were ended, why was not observed":              {leader: steps{terminated(143, 11), deleted(10)}, follower: steps{terminated(143, 11), deleted(10)}, order: -1, rank: -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			var seen jobTerminations
			ranks := []int{0, 1}
			if test.order == 1 {
				ranks = []int{1, 0}
			}
			for _, rank := range ranks {
				if steps := []steps{test.leader, test.follower}[rank]; steps != nil {
					pod := rankPod(strconv.Itoa(rank), steps...)
					seen.note(endOfPod(&pod, false), test.order >= 0)
				}
			}
			blamed := firstToFail(second(10), seen.leader, seen.follower)
			if test.rank < 0 {
				g.Expect(blamed).To(BeNil())
				return
			}
			g.Expect(blamed).NotTo(BeNil())
			g.Expect(blamed.rank).To(Equal(test.rank))
		})
	}
}

// ofJob is the pod of a rank of a Job of the FluxSetup "bees".
func ofJob(job types.UID, rank string, steps ...func(*corev1.Pod)) *corev1.Pod {
	pod := rankPod(rank, steps...)
	pod.Namespace, pod.UID = "team", job+types.UID(rank)
	pod.Labels = map[string]string{labelInstance: "bees"}
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", UID: job, Controller: new(true)}}
	return &pod
}

func TestTerminationsAreKeptOfEachJob(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	var terminations podTerminations
	setup := types.NamespacedName{Namespace: "team", Name: "bees"}

	g.Expect(terminations.note(ofJob("a", "0", makeReady), false, true)).To(BeFalse())
	g.Expect(terminations.of(setup, "a")).To(Equal(jobTerminations{}))
	g.Expect(terminations.note(ofJob("a", "0", makeReady, deleted(4)), false, true)).To(BeFalse(), "it has not ended yet")
	g.Expect(terminations.note(ofJob("a", "0", terminated(143, 5), deleted(4)), false, true)).To(BeTrue())
	g.Expect(terminations.note(ofJob("a", "0", terminated(143, 5), deleted(4)), true, true)).To(BeFalse(), "that is known")
	g.Expect(terminations.of(setup, "a").leader.exitCode).To(HaveValue(Equal(int32(143))))
	g.Expect(terminations.of(setup, "b").leader).To(BeNil(), "another attempt")

	// A pod that is being deleted may still end with 0.
	terminations.note(ofJob("c", "1", makeReady, deleted(3)), false, true)
	g.Expect(terminations.of(setup, "c").follower).NotTo(BeNil())
	terminations.note(ofJob("c", "1", terminated(0, 4), deleted(3)), false, true)
	g.Expect(terminations.of(setup, "c").follower.exitCode).To(HaveValue(BeZero()))

	terminations.forget(setup)
	g.Expect(terminations.of(setup, "a").leader).To(BeNil())
	g.Expect(terminations.jobs).To(BeEmpty())
}

func TestFirstFollowerThatFailsIsKept(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	var terminations podTerminations
	setup := types.NamespacedName{Namespace: "team", Name: "bees"}

	// The order in which the watch reports counts: all ends are in one second.
	terminations.note(ofJob("a", "3", terminated(0, 4)), false, true)
	terminations.note(ofJob("a", "2", makeReady, deleted(4)), false, true)
	terminations.note(ofJob("a", "1", makeReady, deleted(4)), false, true)
	g.Expect(terminations.of(setup, "a").follower.rank).To(Equal(int32(2)))
	// When the kubelet removes the pod, the API server changes its deletionTimestamp: the first report stays.
	done := ofJob("a", "2", terminated(143, 5), deleted(6))
	done.DeletionGracePeriodSeconds = new(int64(0))
	terminations.note(done, true, true)
	g.Expect(terminations.of(setup, "a").follower.exitCode).To(HaveValue(Equal(int32(143))))
	g.Expect(terminations.of(setup, "a").follower.deleted).To(BeTemporally("==", second(4)))

	// One that was deleted and ended with 0 stays known, unless another one fails.
	terminations.note(ofJob("d", "1", makeReady, deleted(4)), false, true)
	terminations.note(ofJob("d", "1", terminated(0, 5), deleted(4)), false, true)
	g.Expect(terminations.of(setup, "d").follower.exitCode).To(HaveValue(BeZero()))
	terminations.note(ofJob("d", "2", terminated(1, 5)), false, true)
	g.Expect(terminations.of(setup, "d").follower.rank).To(Equal(int32(2)))

	// An operator that started later has only the timestamps.
	terminations.note(ofJob("b", "0", makeReady), false, false)
	terminations.note(ofJob("b", "3", terminated(137, 6)), false, true)
	terminations.note(ofJob("b", "2", terminated(137, 5)), false, true)
	terminations.note(ofJob("b", "1", terminated(137, 5)), false, true)
	g.Expect(terminations.of(setup, "b").follower.rank).To(Equal(int32(1)))
	g.Expect(terminations.of(setup, "b").follower.order).To(BeZero())
}

// The Job controller deletes what still runs, as far as it knows. The kubelet of a busy node reports late that a container had
// ended before.
func TestEndThatIsReportedLate(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	var terminations podTerminations
	setup := types.NamespacedName{Namespace: "team", Name: "bees"}
	cause := func(job types.UID) int32 {
		seen := terminations.of(setup, job)
		return firstToFail(second(10), seen.leader, seen.follower).rank
	}
	for _, job := range []types.UID{"a", "b"} {
		terminations.note(ofJob(job, "0", terminated(143, 8)), false, true)
		terminations.note(ofJob(job, "2", makeReady, deleted(10)), false, true)
		terminations.note(ofJob(job, "1", makeReady, deleted(10)), false, true)
		g.Expect(cause(job)).To(Equal(int32(0)))
	}
	terminations.note(ofJob("a", "2", terminated(143, 11), deleted(10)), false, true)
	terminations.note(ofJob("a", "1", terminated(137, 8), deleted(10)), false, true)
	g.Expect(cause("a")).To(Equal(int32(1)), "it is not the one that was deleted first")
	terminations.note(ofJob("b", "2", terminated(137, 8), deleted(10)), false, true)
	g.Expect(cause("b")).To(Equal(int32(2)))
}
