// Command skeleton checks that the stages have one skeleton: who has read one finds everything in the others. Of each
// stage's internal/controller it checks that
//
//   - the package comment lists all files, in the order of reading;
//   - a function uses only functions of its own file and of later ones in that order;
//   - what has one name is in the same place of that order in all stages;
//   - declarations of one name in the common files, and in cmd/main.go, are the same text in all stages; some of them also in
//     the first stage.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

// stage is one operator: a module with the packages internal/controller and cmd.
type stage struct {
	dir string
	// kinds are the custom resources. A file that belongs to one of several has its name as prefix.
	kinds []string
}

var stages = []stage{
	{"02-lolcow", []string{"Lolcow"}},
	{"03-flux", []string{"FluxSetup", "Flux"}},
	{"04-goop", []string{"Goop"}},
}

// exception is a declaration that one stage may have in another text.
type exception struct {
	stage, declaration, reason string
}

// exceptions that are not needed any longer are reported.
var exceptions = []exception{
	{"04-goop", "maxConditionMessage", "its status has the output of failed workers too, and stays below 64 KiB"},
}

func main() {
	root := flag.String("root", ".", "the repository")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *root); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, root string) error {
	operators, err := loadAll(ctx, root, stages)
	if err != nil {
		return err
	}
	oldest, err := loadFirst(root, first)
	if err != nil {
		return err
	}
	problems := append(check(operators, exceptions), checkFirst(oldest, operators, commonWithFirst)...)
	for _, problem := range problems {
		fmt.Fprintln(os.Stderr, problem)
	}
	if len(problems) > 0 {
		return fmt.Errorf("%d deviations from the skeleton", len(problems))
	}
	return nil
}

// check returns one text for each deviation from the skeleton.
func check(operators []*operator, allowed []exception) []string {
	var problems []string
	for _, o := range operators {
		problems = append(problems, o.checkFiles()...)
		problems = append(problems, o.checkArrows()...)
	}
	problems = append(problems, checkOrder(operators)...)
	return append(problems, checkTexts(operators, allowed)...)
}
