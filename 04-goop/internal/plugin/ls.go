package plugin

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"example.com/workbook/04-goop/api/v1alpha1"
)

const (
	// pageSize is how many Goops one list request returns.
	pageSize = 500

	// maxCommand is how many characters of a command ls shows.
	maxCommand = 40
)

// lsFlags are the flags of ls.
type lsFlags struct {
	everywhere bool
	format     string
}

func (a *app) lsCommand() *cobra.Command {
	l := &lsFlags{}
	command := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List Goops",
		Example: `  # The Goops of all namespaces
  kubectl goop ls -A

  # The names of those of this one
  kubectl goop ls -o name`,
		Args:              usage(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			switch l.format {
			case "", "json", "yaml", "name":
				return a.ls(command.Context(), l)
			}
			return usageError{fmt.Errorf("--output: %q is not known: the formats are json, yaml and name", l.format)}
		},
	}
	command.Flags().BoolVarP(&l.everywhere, "all-namespaces", "A", false, "the Goops of all namespaces")
	command.Flags().StringVarP(&l.format, "output", "o", "", "json, yaml or name; a table, if unset")
	fixed(command, "output", "json", "yaml", "name")
	return command
}

func (a *app) ls(ctx context.Context, l *lsFlags) error {
	api, err := connect(a.flags, a.streams.ErrOut, l.everywhere)
	if err != nil {
		return err
	}
	goops, err := api.list(ctx)
	if err != nil {
		return err
	}
	switch l.format {
	case "json":
		return a.printObject(&printers.JSONPrinter{}, goops)
	case "yaml":
		return a.printObject(&printers.YAMLPrinter{}, goops)
	case "name":
		for i := range goops.Items {
			if _, err := fmt.Fprintf(a.streams.Out, "%s%s\n", resourcePrefix, goops.Items[i].Name); err != nil {
				return err
			}
		}
		return nil
	}
	if len(goops.Items) == 0 {
		where := "in " + api.namespace
		if l.everywhere {
			where = "in any namespace"
		}
		a.console.say("there are no Goops %s", where)
		return nil
	}
	return table(a.streams.Out, goops.Items, l.everywhere, a.clock.Now())
}

// printObject prints a whole object. On a terminal it is escaped: the status of a Goop has output of workers.
func (a *app) printObject(printer printers.ResourcePrinter, object runtime.Object) error {
	var text bytes.Buffer
	if err := printer.PrintObj(object, &text); err != nil {
		return err
	}
	_, err := a.console.Write(a.console.shown(text.Bytes()))
	return err
}

// list returns all Goops of the namespace. It sets the kinds, which printers need.
func (a *api) list(ctx context.Context) (*v1alpha1.GoopList, error) {
	all := &v1alpha1.GoopList{}
	for options := (metav1.ListOptions{Limit: pageSize}); ; options.Continue = all.Continue {
		page, err := a.goops.List(ctx, options)
		if err != nil {
			return nil, explained(err)
		}
		all.ListMeta = page.ListMeta
		all.Items = append(all.Items, page.Items...)
		if page.Continue == "" {
			break
		}
	}
	all.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("GoopList"))
	for i := range all.Items {
		all.Items[i].SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("Goop"))
		all.Items[i].ManagedFields = nil
	}
	return all, nil
}

func table(out io.Writer, goops []v1alpha1.Goop, everywhere bool, now time.Time) error {
	tabs := printers.GetNewTabWriter(out)
	heads, namespace := "NAME\tSTATE\tDONE\tRUNNING\tFAILED\tEXIT\tAGE\tCOMMAND", ""
	if everywhere {
		heads = "NAMESPACE\t" + heads
	}
	fmt.Fprintln(tabs, heads)
	for i := range goops {
		goop, status := &goops[i], &goops[i].Status
		if everywhere {
			namespace = goop.Namespace + "\t"
		}
		exit := ""
		if status.ExitCode != nil {
			exit = strconv.Itoa(int(*status.ExitCode))
		}
		fmt.Fprintf(tabs, "%s%s\t%s\t%d/%d\t%d\t%d\t%s\t%s\t%s\n", namespace, goop.Name, state(goop),
			status.Succeeded+status.Failed, status.Desired, status.Running, status.Failed, exit,
			duration.HumanDuration(now.Sub(goop.CreationTimestamp.Time)), shortened(goop.Spec.Cmd))
	}
	return tabs.Flush()
}

// state is a summary of a Goop in one word: its end, or what it waits for.
func state(goop *v1alpha1.Goop) string {
	conditions := goop.Status.Conditions
	if goop.DeletionTimestamp != nil {
		return "Terminating"
	}
	for _, end := range []string{v1alpha1.ConditionComplete, v1alpha1.ConditionFailed, v1alpha1.ConditionSuspended} {
		if apimeta.IsStatusConditionTrue(conditions, end) {
			return end
		}
	}
	running := apimeta.FindStatusCondition(conditions, v1alpha1.ConditionRunning)
	switch {
	case running == nil:
		return "New"
	case running.Reason == v1alpha1.ReasonWorking:
		return v1alpha1.ConditionRunning
	}
	return running.Reason
}

// shortened returns a command in one line.
func shortened(cmd []string) string {
	words := make([]string, len(cmd))
	for i, word := range cmd {
		if words[i] = word; word == "" || strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' || !strconv.IsPrint(r) }) {
			words[i] = strconv.Quote(word)
		}
	}
	line := []rune(strings.Join(words, " "))
	if len(line) > maxCommand {
		return string(line[:maxCommand-1]) + "…"
	}
	return string(line)
}
