package plugin

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// completeWithin limits how long the user waits after the tab key.
const completeWithin = 3 * time.Second

// fixed completes the value of a flag.
func fixed(command *cobra.Command, flag string, values ...string) {
	// It fails only for a flag that does not exist.
	_ = command.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// completeOne completes the name of a Goop.
func (a *app) completeOne(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeMany(command, args, "")
}

// completeMany completes the names of Goops that are not arguments yet. The shell filters them by what was typed.
func (a *app) completeMany(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return complete(command, func(ctx context.Context) ([]string, error) {
		api, err := a.connect()
		if err != nil {
			return nil, err
		}
		goops, err := api.goops.List(ctx, metav1.ListOptions{Limit: pageSize})
		if err != nil {
			return nil, err
		}
		var names []string
		for i := range goops.Items {
			if goop := &goops.Items[i]; !slices.Contains(args, goop.Name) {
				names = append(names, goop.Name+"\t"+state(goop)+": "+shortened(goop.Spec.Cmd))
			}
		}
		return names, nil
	})
}

// completeFlags completes the values of the flags that all commands have.
func (a *app) completeFlags(root *cobra.Command) {
	_ = root.RegisterFlagCompletionFunc("namespace", func(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return complete(command, func(ctx context.Context) ([]string, error) {
			api, err := a.connect()
			if err != nil {
				return nil, err
			}
			namespaces, err := api.core.CoreV1().Namespaces().List(ctx, metav1.ListOptions{Limit: pageSize})
			if err != nil {
				return nil, err
			}
			names := make([]string, len(namespaces.Items))
			for i := range namespaces.Items {
				names[i] = namespaces.Items[i].Name
			}
			return names, nil
		})
	})
	_ = root.RegisterFlagCompletionFunc("context", func(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return complete(command, func(context.Context) ([]string, error) {
			config, err := a.flags.ToRawKubeConfigLoader().RawConfig()
			var names []string
			for name := range config.Contexts {
				names = append(names, name)
			}
			slices.Sort(names)
			return names, err
		})
	})
}

// complete runs a function that lists names. If it fails nothing is completed, because errors cannot be shown there.
func complete(command *cobra.Command, names func(context.Context) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	ctx, done := context.WithTimeout(command.Context(), completeWithin)
	defer done()
	found, err := names(ctx)
	if err != nil {
		cobra.CompDebugln(err.Error(), false)
		return nil, cobra.ShellCompDirectiveError
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
