package e2e

import (
	"fmt"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/shared/e2e"
)

const (
	// sayHost has each task name the host that it runs on.
	sayHost = `echo "host: $(cat /etc/hostname)"`
	// sayTask has each task name its number, and the host that it runs on.
	sayTask = `echo "task: $FLUX_TASK_RANK on $(cat /etc/hostname)"`
	// sayConfinement has each task name its user, and how the root file system is mounted.
	sayConfinement = `while read -r key id rest; do test "$key" != Uid: || echo "user: $id"; done < /proc/self/status
		while read -r what where type options rest; do test "$where" != / || echo "root: ${options%%,*}"; done < /proc/mounts`
)

var _ = env.SideBySide("A Flux, on brokers that run,", atOnce,
	onContainers("of size 1 runs its command once", func(w *world) {
		flux := w.create("one", v1alpha1.FluxSpec{Command: sh(sayHost)})
		w.complete(flux)
		w.Expect(w.output(flux, "host: ")).To(Equal([]string{"one-1-0"}))
	}),
	onContainers("of size 4 has the output of all ranks on the leader, from both nodes", func(w *world) {
		flux := w.create("four", v1alpha1.FluxSpec{
			Command: sh(sayHost), Size: 4, Template: &v1alpha1.PodTemplate{SchedulerName: byHand},
		})
		nodes := map[string]bool{}
		for i, pod := range w.all(flux) {
			nodes[w.bind(pod, i)] = true
		}
		w.Expect(len(nodes)).To(BeNumerically(">=", 2))
		w.complete(flux)
		w.Expect(w.output(flux, "host: ")).To(Equal([]string{"four-1-0", "four-1-1", "four-1-2", "four-1-3"}))
	}),
	onContainers("of size 8 has the output of all ranks on the leader", func(w *world) {
		flux := w.create("eight", v1alpha1.FluxSpec{Command: sh(sayHost), Size: 8})
		w.complete(flux)
		lines := w.output(flux, "host: ")
		w.Expect(lines).To(HaveLen(8))
		for i, line := range lines {
			w.Expect(line).To(Equal(fmt.Sprintf("eight-1-%d", i)))
		}
	}),
	onContainers("runs twice as many tasks as it has ranks", func(w *world) {
		flux := w.create("tasks", v1alpha1.FluxSpec{Command: sh(sayTask), Size: 2, Tasks: new(int32(4))})
		w.complete(flux)
		w.Expect(w.output(flux, "task: ")).To(Equal([]string{"0 on tasks-1-0", "1 on tasks-1-0", "2 on tasks-1-1", "3 on tasks-1-1"}))
	}),
	onContainers("with minSize runs on the ranks that came", func(w *world) {
		flux := w.create("quorum", v1alpha1.FluxSpec{
			Command: sh(sayTask), Size: 3, MinSize: new(int32(2)), Template: &v1alpha1.PodTemplate{SchedulerName: byHand},
		})
		ranks := w.all(flux)
		w.bind(ranks[0], 0)
		w.bind(ranks[1], 1)
		w.complete(flux)
		lines := w.output(flux, "task: ")
		w.Expect(lines).To(HaveLen(3), "tasks is size, if it is not given")
		w.Expect(lines).To(ContainElement(HaveSuffix(" on quorum-1-0")))
		w.Expect(lines).To(ContainElement(HaveSuffix(" on quorum-1-1")))
		w.Expect(lines).NotTo(ContainElement(HaveSuffix(" on quorum-1-2")))
	}),
	onContainers("in the mode Launcher runs its command on rank 0, which submits work itself", func(w *world) {
		flux := w.create("launcher", v1alpha1.FluxSpec{
			Command: sh(`echo "once: $(cat /etc/hostname)"; flux run -N2 -n2 sh -c '` + sayTask + `'`),
			Size:    2, Mode: v1alpha1.ModeLauncher,
		})
		w.complete(flux)
		w.Expect(w.output(flux, "once: ")).To(Equal([]string{"launcher-1-0"}))
		w.Expect(w.output(flux, "task: ")).To(Equal([]string{"0 on launcher-1-0", "1 on launcher-1-1"}))
	}),
	onContainers("gets its arguments byte for byte", func(w *world) {
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
			w.Expect(w.log(w.leader(flux))).To(ContainSubstring(want.String()), flux.Name)
		}
	}),
	onContainers("runs under the restricted Pod Security level, with a read-only root, as user 1000", func(w *world) {
		flux := w.create("restricted", v1alpha1.FluxSpec{
			Command: sh(sayConfinement + `; echo "$WORD" > /scratch/word; echo "word: $(cat /scratch/word)"`),
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
		w.Expect(w.output(flux, "root: ")).To(Equal([]string{"ro", "ro"}))
		w.Expect(w.output(flux, "user: ")).To(Equal([]string{"1000", "1000"}))
		w.Expect(w.output(flux, "word: ")).To(Equal([]string{"as it is", "as it is"}))
	}, e2e.Restricted),
)
