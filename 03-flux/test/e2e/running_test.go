package e2e

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/shared/e2e"
)

const (
	// printHost makes each task print the host that it runs on.
	printHost = `echo "host: $(cat /etc/hostname)"`
	// printTask makes each task print its number, and the host that it runs on.
	printTask = `echo "task: $FLUX_TASK_RANK on $(cat /etc/hostname)"`
	// printConfinement makes each task print its user, and how the root file system is mounted.
	printConfinement = `while read -r key id rest; do test "$key" != Uid: || echo "user: $id"; done < /proc/self/status
		while read -r what where type options rest; do test "$where" != / || echo "root: ${options%%,*}"; done < /proc/mounts`
)

var _ = Describe("A Flux, on running brokers,", func() {
	onContainers("of size 1 runs its command once", func(w *testEnv) {
		flux := w.create("one", v1alpha1.FluxSpec{Command: sh(printHost)})
		w.complete(flux)
		Expect(w.output(flux, "host: ")).To(Equal([]string{"one-1-0"}))
	})
	onContainers("of size 4 has the output of all ranks on the leader, from both nodes", func(w *testEnv) {
		flux := w.create("four", v1alpha1.FluxSpec{
			Command: sh(printHost), Size: 4, Template: &v1alpha1.PodTemplate{SchedulerName: byHand},
		})
		nodes := map[string]bool{}
		for i, pod := range w.all(flux) {
			nodes[w.bind(pod, i)] = true
		}
		Expect(len(nodes)).To(BeNumerically(">=", 2))
		w.complete(flux)
		Expect(w.output(flux, "host: ")).To(Equal([]string{"four-1-0", "four-1-1", "four-1-2", "four-1-3"}))
	})
	onContainers("of size 8 has the output of all ranks on the leader", func(w *testEnv) {
		flux := w.create("eight", v1alpha1.FluxSpec{Command: sh(printHost), Size: 8})
		w.complete(flux)
		lines := w.output(flux, "host: ")
		Expect(lines).To(HaveLen(8))
		for i, line := range lines {
			Expect(line).To(Equal(fmt.Sprintf("eight-1-%d", i)))
		}
	})
	onContainers("runs twice as many tasks as it has ranks", func(w *testEnv) {
		flux := w.create("tasks", v1alpha1.FluxSpec{Command: sh(printTask), Size: 2, Tasks: new(int32(4))})
		w.complete(flux)
		Expect(w.output(flux, "task: ")).To(Equal([]string{"0 on tasks-1-0", "1 on tasks-1-0", "2 on tasks-1-1", "3 on tasks-1-1"}))
	})
	onContainers("with minSize runs on the ranks that joined", func(w *testEnv) {
		flux := w.create("quorum", v1alpha1.FluxSpec{
			Command: sh(printTask), Size: 3, MinSize: new(int32(2)), Template: &v1alpha1.PodTemplate{SchedulerName: byHand},
		})
		ranks := w.all(flux)
		w.bind(ranks[0], 0)
		w.bind(ranks[1], 1)
		w.complete(flux)
		lines := w.output(flux, "task: ")
		Expect(lines).To(HaveLen(3), "the default of tasks is size")
		Expect(lines).To(ContainElement(HaveSuffix(" on quorum-1-0")))
		Expect(lines).To(ContainElement(HaveSuffix(" on quorum-1-1")))
		Expect(lines).NotTo(ContainElement(HaveSuffix(" on quorum-1-2")))
	})
	onContainers("in the mode Launcher runs its command on rank 0, which submits work itself", func(w *testEnv) {
		flux := w.create("launcher", v1alpha1.FluxSpec{
			Command: sh(`echo "once: $(cat /etc/hostname)"; flux run -N2 -n2 sh -c '` + printTask + `'`),
			Size:    2, Mode: v1alpha1.ModeLauncher,
		})
		w.complete(flux)
		Expect(w.output(flux, "once: ")).To(Equal([]string{"launcher-1-0"}))
		Expect(w.output(flux, "task: ")).To(Equal([]string{"0 on launcher-1-0", "1 on launcher-1-1"}))
	})
	onContainers("gets its arguments byte for byte", func(w *testEnv) {
		arguments := []string{
			"", " ", "two words", "  kept  ", "tab\there", "line\nbreak\n", "\r", `"double"`, `'single'`, "`backtick`", `back\slash\n`,
			"$HOME", "${HOME}", "$(HOSTNAME)", "$$", "$$$", "$$(HOSTNAME)", "$", "*", "?", "~", "!", "#", ";", "&&", "|", ">x", "%s", "{a,b}", "{{id}}", "{{size}}", "{{",
			"--", "-", "-n4", "--help", "-o", "--env=A=B", "=", "é ü 日本語 \U0001F42E", "\u00a0", "\x01\x1f\x7f", "\u0085\u2028\ufeff", strings.Repeat("long ", 200),
		}
		const show = `for a; do printf '<%s>\n' "$a"; done; printf '\n[%s]\n' "$#"`
		want := strings.Builder{}
		for _, argument := range arguments {
			fmt.Fprintf(&want, "<%s>\n", argument)
		}
		fmt.Fprintf(&want, "\n[%d]\n", len(arguments))
		submitted := w.create("submitted", v1alpha1.FluxSpec{Command: sh(show, arguments...)})
		launched := w.create("launched", v1alpha1.FluxSpec{Command: sh(show, arguments...), Mode: v1alpha1.ModeLauncher})
		for _, flux := range []*v1alpha1.Flux{submitted, launched} {
			w.complete(flux)
			Expect(w.log(w.leader(flux))).To(ContainSubstring(want.String()), flux.Name)
		}
	})
	onContainers("runs under the restricted Pod Security level, with a read-only root, as user 1000", func(w *testEnv) {
		flux := w.create("restricted", v1alpha1.FluxSpec{
			Command: sh(printConfinement + `; echo "$WORD" > /scratch/word; echo "word: $(cat /scratch/word)"`),
			Size:    2,
			Template: &v1alpha1.PodTemplate{
				Env:          []corev1.EnvVar{{Name: "WORD", Value: "as it is"}},
				Volumes:      []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
				VolumeMounts: []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}},
				SecurityContext: &corev1.PodSecurityContext{
					RunAsNonRoot: new(true), RunAsUser: new(int64(1000)), RunAsGroup: new(int64(1000)),
					SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				},
				ContainerSecurityContext: &corev1.SecurityContext{
					ReadOnlyRootFilesystem: new(true), AllowPrivilegeEscalation: new(false),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			},
		})
		w.complete(flux)
		Expect(w.output(flux, "root: ")).To(Equal([]string{"ro", "ro"}))
		Expect(w.output(flux, "user: ")).To(Equal([]string{"1000", "1000"}))
		Expect(w.output(flux, "word: ")).To(Equal([]string{"as it is", "as it is"}))
	}, e2e.Restricted)
})
