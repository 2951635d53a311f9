// Package nogoop is exercise 01a: a Job in place of an operator.
package nogoop

import (
	"example.com/workbook/shared/exercise/check"
)

// workers is how many there are.
const workers = 6

// Check creates the Job on two nodes of its own, and ends its Pods.
func Check(t *check.T, work check.Work[check.Files]) {
	ok := t.Behaviour("six workers run at the same time, with the numbers 0 to 5", func(b *check.B) {
		s := newScene(b, work.Dir)
		s.numbered(s.running())
	})
	if !ok {
		return
	}
	t.Behaviour("three run on each of two nodes", func(b *check.B) {
		s := newScene(b, work.Dir)
		s.even(s.running())
	})
	t.Behaviour("if all succeed, the Job is Complete, and stays", func(b *check.B) {
		s := newScene(b, work.Dir)
		pods := s.running()
		s.stays()
		for _, pod := range pods {
			s.end(pod, succeeded)
		}
		s.complete()
	})
	t.Behaviour("a worker that fails is started once more", func(b *check.B) {
		s := newScene(b, work.Dir)
		s.end(s.running()[2], failed)
		s.end(s.again(2), succeeded)
		s.othersRun(2)
	})
	t.Behaviour("if it fails again, the others go on, and the status says which one has failed", func(b *check.B) {
		s := newScene(b, work.Dir)
		s.end(s.running()[2], failed)
		s.end(s.again(2), failed)
		s.failedIndexes("2", 2)
		for worker, pod := range s.othersRun(2) {
			if worker != 2 {
				s.end(pod, succeeded)
			}
		}
		s.completed("0,1,3-5")
	})
	t.Behaviour("so it is if five of the six fail twice", func(b *check.B) {
		s := newScene(b, work.Dir)
		pods := s.running()
		for worker := range workers - 1 {
			s.end(pods[worker], failed)
		}
		for worker := range workers - 1 {
			pods[worker] = s.again(worker)
		}
		for worker := range workers - 1 {
			s.end(pods[worker], failed)
		}
		s.failedIndexes("0-4", 0, 1, 2, 3, 4)
		s.end(s.othersRun(0, 1, 2, 3, 4)[5], succeeded)
		s.completed("5")
	})
}
