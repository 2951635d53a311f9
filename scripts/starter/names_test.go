package main

import "testing"

func TestPlural(t *testing.T) {
	for kind, want := range map[string]string{
		"Teapot": "Teapots", "TeaPot": "TeaPots", "Fox": "Foxes", "Policy": "Policies", "Flux": "Fluxes",
		"FluxSetup": "FluxSetups", "Goop": "Goops", "Index": "Indices",
	} {
		if got := plural(kind); got != want {
			t.Errorf("plural(%s) = %s, want %s", kind, got, want)
		}
	}
}

func TestShortName(t *testing.T) {
	tests := []struct{ kind, primary, want string }{
		{"Teapot", "Teapot", "tea"},
		{"TeaPot", "TeaPot", "tea"},
		{"TeapotSetup", "Teapot", "teas"},
		{"Fox", "Fox", "fo"},
		{"FoxSetup", "Fox", "fos"},
		// Those that Kubernetes has are not free, nor a second kind's one letter longer.
		{"Podcast", "Podcast", "podc"},
		{"Ingot", "Ingot", "ingo"},
		{"Hpalette", "Hpalette", "hpal"},
		{"Pvcs", "Pvcs", "ps"},
		{"Now", "Now", "nw"},
		{"Stone", "Stone", "sto"},
		{"Sto", "Sto", "so"},
		{"StoSetup", "Sto", "sos"},
	}
	for _, tt := range tests {
		if got := shortName(tt.kind, tt.primary); got != tt.want {
			t.Errorf("shortName(%s, %s) = %s, want %s", tt.kind, tt.primary, got, tt.want)
		}
	}
}

// lolcowNames are stage 2's, as its PROJECT and go.mod give them.
func lolcowNames(t *testing.T, kind string) *renamer {
	t.Helper()
	s := &stage{dir: "02-lolcow", module: "example.com/workbook/02-lolcow", ProjectName: "lolcow", Domain: "my.domain"}
	s.Resources = append(s.Resources, resource{Kind: "Lolcow", Domain: "my.domain", Version: "v1alpha1"})
	return newRenamer(s.names(options{Module: "github.com/me/my-op", Domain: "me.dev", Kind: kind}), []keepRule{links})
}

func TestTextRenamesWhatIsAName(t *testing.T) {
	tests := []struct{ kind, old, want string }{
		// The ways to write a kind.
		{"Teapot", "Lolcow lolcow LOLCOW", "Teapot teapot TEAPOT"},
		{"Teapot", "Lolcows lolcows LOLCOWS", "Teapots teapots TEAPOTS"},
		{"Fox", "a Lolcow, two Lolcows, lolcows.my.domain", "a Fox, two Foxes, foxes.me.dev"},
		{"Policy", "LolcowList lolcows", "PolicyList policies"},
		// Identifiers.
		{"Teapot", "NewLolcowReconciler", "NewTeapotReconciler"},
		{"TeaPot", "lolcowImage lolcow lolcowsFor", "teaPotImage teapot teaPotsFor"},
		{"Teapot", "isALolcow RELATED_IMAGE_LOLCOW", "isATeapot RELATED_IMAGE_TEAPOT"},
		{"Teapot", "mydomainv1alpha1", "medevv1alpha1"},
		// Manifests and file names.
		{"Teapot", "my.domain_lolcows.yaml", "me.dev_teapots.yaml"},
		{"Teapot", "lolcow-system/lolcow-controller-manager", "teapot-system/teapot-controller-manager"},
		{"Teapot", "my.domain/v1alpha1", "me.dev/v1alpha1"},
		{"Teapot", "lolcow_controller.go", "teapot_controller.go"},
		// Module paths, and where the stage is.
		{"Teapot", "example.com/workbook/02-lolcow/api", "github.com/me/my-op/api"},
		{"Teapot", "example.com/workbook/shared/e2e", "github.com/me/my-op/hack/harness/shared/e2e"},
		{"Teapot", "example.com/workbook", "github.com/me/my-op"},
		{"Teapot", "02-lolcow", "my-op"},
		{"Teapot", "run make stage-2 e2e or make stage-2-e2e", "run make e2e or make e2e"},
		// The repository that the stage was part of.
		{"Teapot", "the workbook's own, TestFindsTheWorkbooksOwn", "the project's own, TestFindsTheProjectsOwn"},
		// Around a name.
		{"Teapot", `"\nlolcow\tlolcow"`, `"\nteapot\tteapot"`},
		{"Teapot", "50lolcows `lolcow` $lolcow", "50teapots `teapot` $teapot"},
		{"Teapot", "http://lolcow.default.svc:80/", "http://teapot.default.svc:80/"},
	}
	for _, tt := range tests {
		if got := lolcowNames(t, tt.kind).text(place{}, tt.old); got != tt.want {
			t.Errorf("KIND=%s: %q became %q, want %q", tt.kind, tt.old, got, tt.want)
		}
	}
}

func TestTextKeepsWhatOnlyLooksLikeAName(t *testing.T) {
	for _, same := range []string{
		"lolcowish Lolcowish", "cow cowsay", "my.domains not-my.domain", "mydomain",
		"https://github.com/vsoch/lolcow-operator is where the story began",
		"example.com/workbooks",
	} {
		if got := lolcowNames(t, "Teapot").text(place{}, same); got != same {
			t.Errorf("%q became %q", same, got)
		}
	}
}

func TestAKindOfTheSameNameChangesNothing(t *testing.T) {
	const text = "Lolcow lolcows LOLCOW lolcowImage"
	if got := lolcowNames(t, "Lolcow").text(place{}, text); got != text {
		t.Errorf("%q became %q", text, got)
	}
}

// fluxNames are those of a stage whose kind is called like another project's program.
func fluxNames(t *testing.T) *renamer {
	t.Helper()
	s := &stage{dir: "03-flux", module: "example.com/workbook/03-flux", ProjectName: "flux-operator", Domain: "flux-framework.org"}
	for _, kind := range []string{"FluxSetup", "Flux"} {
		s.Resources = append(s.Resources, resource{Kind: kind, Domain: "flux-framework.org", Version: "v1alpha1"})
	}
	keep, err := compile([]keepRule{
		{Match: `\bFLUX_[A-Z_]+`},
		{Match: `\bflux (broker|start|exec|config)\b`},
		{Match: `\B/flux(-config)?\b`},
		{Match: `(?i)flux`, Files: []string{"test/standin/"}},
		{Match: `"flux"`, In: []string{"string"}, Files: []string{"internal/controller/resources.go"}},
		{Match: `.+`, In: []string{"data"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return newRenamer(s.names(options{Module: "github.com/me/my-op", Domain: "me.dev", Kind: "Teapot"}), keep)
}

func TestTwoKindsAndTheWordsOfAnUpstream(t *testing.T) {
	inResources := place{file: "internal/controller/resources.go", part: "string"}
	tests := []struct {
		at        place
		old, want string
	}{
		{place{}, "Flux makes a FluxSetup; fluxsetups and fluxes", "Teapot makes a TeapotSetup; teapotsetups and teapots"},
		{place{}, "FluxSetupReconciler fluxSetup flux-system", "TeapotSetupReconciler teapotSetup teapot-system"},
		{place{}, "flux-operator-system in the label managed-by: flux-operator", "teapot-system in the label managed-by: teapot"},
		{place{}, "flux-framework.org/v1alpha1", "me.dev/v1alpha1"},
		{place{}, "k.contains('flux-framework.org/') || k == 'flux-framework.org/attempt'", "k.contains('me.dev/') || k == 'me.dev/attempt'"},
		{place{}, "path=fluxes,singular=flux; flux-framework.org_fluxes.yaml", "path=teapots,singular=teapot; me.dev_teapots.yaml"},
		{place{}, "kubectl get flux,fluxsetup; kubectl wait flux/x", "kubectl get teapot,teapotsetup; kubectl wait teapot/x"},
		{place{}, "['/flux', '/flux-config'] and /flux/run, but /fluxes", "['/flux', '/flux-config'] and /flux/run, but /teapots"},
		{place{file: "test/standin/cmd/flux/main.go", part: "path"}, "test/standin/cmd/flux/main.go", "test/standin/cmd/flux/main.go"},
		{place{file: "test/standin/cmd/flux/main.go", part: "comment"}, "// Flux, as it is here", "// Flux, as it is here"},
		{place{file: "test/standin/cmd/flux/main.go", part: "import"}, "example.com/workbook/03-flux/test/standin", "github.com/me/my-op/test/standin"},
		{place{}, "FLUX_URI of the flux broker, started by flux start", "FLUX_URI of the flux broker, started by flux start"},
		{inResources, `"flux"`, `"flux"`},
		{inResources, `"flux-sample"`, `"teapot-sample"`},
		{place{file: "cmd/main.go", part: "string"}, `"flux"`, `"teapot"`},
		{place{file: "config/broker.yaml", part: "data.broker.toml"}, "tbon.flux = 1", "tbon.flux = 1"},
		{place{file: "config/broker.yaml", part: "metadata.name"}, "flux-config", "teapot-config"},
		{place{}, "influx", "influx"},
	}
	for _, tt := range tests {
		if got := fluxNames(t).text(tt.at, tt.old); got != tt.want {
			t.Errorf("%+v: %q became %q, want %q", tt.at, tt.old, got, tt.want)
		}
	}
}

func TestCompileRefusesRulesThatKeepNothingOrEverything(t *testing.T) {
	for _, match := range []string{"", "(", "x*"} {
		if _, err := compile([]keepRule{{Match: match}}); err == nil {
			t.Errorf("no error for %q", match)
		}
	}
}
