package audit

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/workbook/shared/cluster"
)

const operatorUser = "system:serviceaccount:lolcow-system:lolcow-controller-manager"

// line is one event of a log, as the API server writes it.
func line(id, stage, verb, group, resource, namespace, name, second string) string {
	subresource := ""
	if r, s, found := strings.Cut(resource, "/"); found {
		resource, subresource = r, s
	}
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":%q,"stage":%q,`+
		`"requestURI":"/apis/x","verb":%q,"user":{"username":%q,"extra":{"authentication.kubernetes.io/credential-id":["JTI=7"]}},"objectRef":{"resource":%q,"subresource":%q,"namespace":%q,"name":%q,"apiGroup":%q},`+
		`"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:%s.000000Z"}`+"\n",
		id, stage, verb, operatorUser, resource, subresource, namespace, name, group, second)
}

var log = line("1", "ResponseComplete", "get", "apps", "deployments", "a", "moo", "01") +
	line("2", "ResponseStarted", "watch", "my.domain", "lolcows", "", "", "02") +
	line("3", "ResponseComplete", "patch", "apps", "deployments", "a", "moo", "03") +
	line("2", "ResponseComplete", "watch", "my.domain", "lolcows", "", "", "02") +
	line("4", "ResponseComplete", "patch", "my.domain", "lolcows/status", "a", "moo", "04") +
	line("5", "ResponseComplete", "update", "coordination.k8s.io", "leases", "lolcow-system", "lock", "05") +
	line("6", "ResponseComplete", "create", "events.k8s.io", "events", "lolcow-system", "", "06") +
	line("7", "ResponseComplete", "create", "events.k8s.io", "events", "a", "", "07") +
	line("8", "ResponseComplete", "create", "authentication.k8s.io", "tokenreviews", "", "", "08") +
	line("9", "ResponseComplete", "patch", "apps", "deployments", "a", "moo", "09") +
	line("10", "ResponseComplete", "get", "", "configmaps", "default", "audit-mark-1", "10") +
	line("11", "ResponseComplete", "delete", "", "services", "a", "moo", "11")

func read(t *testing.T, mark string, filters ...Filter) []Event {
	t.Helper()
	events, _, err := parse(strings.NewReader(log), mark, filters)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func ids(events []Event) []string {
	var out []string
	for _, e := range events {
		out = append(out, string(e.AuditID))
	}
	return out
}

func TestFilters(t *testing.T) {
	second := func(n int) time.Time { return time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC) }
	for name, test := range map[string]struct {
		filters []Filter
		want    []string
	}{
		"writes":                  {[]Filter{Writes()}, []string{"3", "4", "5", "6", "7", "8", "9", "11"}},
		"writes against a budget": {[]Filter{Writes(), Budgeted()}, []string{"3", "4", "7", "9", "11"}},
		"a verb":                  {[]Filter{Verbs("get")}, []string{"1", "10"}},
		"a resource":              {[]Filter{Resource("apps", "deployments"), Writes()}, []string{"3", "9"}},
		"a namespace":             {[]Filter{InNamespace("a"), Not(Writes())}, []string{"1"}},
		"since a moment":          {[]Filter{Since(second(9))}, []string{"9", "10", "11"}},
		"another user":            {[]Filter{By("system:admin")}, nil},
		"the user":                {[]Filter{By(operatorUser), Verbs("delete")}, []string{"11"}},
		"a response code":         {[]Filter{ResponseCode(409)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ids(read(t, "", test.filters...)); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestCredential(t *testing.T) {
	events := read(t, "", Verbs("delete"))
	if got := Credential(&events[0]); got != "JTI=7" {
		t.Errorf("got %q, want the id of the token", got)
	}
	if got := Credential(&Event{}); got != "" {
		t.Errorf("got %q for a user without a token, want nothing", got)
	}
}

func TestParseStopsAtTheMark(t *testing.T) {
	events, found, err := parse(strings.NewReader(log), "audit-mark-1", nil)
	if err != nil || !found {
		t.Fatalf("the mark was not found: %v", err)
	}
	// The watch counts once, with its last stage, and nothing after the mark counts.
	if want := []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}; !slices.Equal(ids(events), want) {
		t.Errorf("got %v, want %v", ids(events), want)
	}
	if events[1].Stage != "ResponseComplete" {
		t.Errorf("the watch has stage %s, want the last", events[1].Stage)
	}
	if _, found, err := parse(strings.NewReader(log), "audit-mark-2", nil); err != nil || found {
		t.Errorf("a mark was found that is not there: %v", err)
	}
}

func TestParseLeavesAnUnfinishedLineForLater(t *testing.T) {
	half := log[:len(log)-20]
	events, _, err := parse(strings.NewReader(half), "", []Filter{Verbs("delete")})
	if err != nil || len(events) != 0 {
		t.Errorf("got %v, %v, want nothing from half a line", ids(events), err)
	}
}

func TestAnEventThatIsNoJSONIsAnErrorBeforeTheMark(t *testing.T) {
	broken := strings.Replace(log, `"verb":"patch"`, `"verb":"pat`+"\n", 1)
	if _, found, err := parse(strings.NewReader(broken), "audit-mark-1", nil); err == nil || !found {
		t.Error("half an event before the mark is no error")
	}
	before, _, _ := strings.Cut(broken, "audit-mark-1")
	if _, found, err := parse(strings.NewReader(before), "audit-mark-1", nil); err != nil || found {
		t.Errorf("got %v, want to read again until the mark is there", err)
	}
}

// Lines without the texts that the filters look for are not parsed.
func TestLinesWithoutTheTextsAreNotParsed(t *testing.T) {
	rest := strings.ReplaceAll(log, `"namespace":"a"`, `"namespace":"b"`)
	broken := strings.ReplaceAll(rest, "{", "") + line("12", "ResponseComplete", "delete", "", "services", "a", "moo", "12") + "audit-mark-2\n"
	for name, filters := range map[string][]Filter{
		"namespace":          {InNamespace("a")},
		"user and namespace": {By(operatorUser), InNamespace("a")},
		"all":                {By(operatorUser), Resource("", "services"), InNamespace("a"), Writes()},
		"since a moment":     {Since(time.Date(2026, 1, 1, 0, 0, 12, 0, time.UTC))},
	} {
		events, found, err := parse(strings.NewReader(broken), "audit-mark-2", filters)
		if err != nil || !found || !slices.Equal(ids(events), []string{"12"}) {
			t.Errorf("%s: got %v, %v", name, ids(events), err)
		}
	}
}

// searched is a cluster whose log is searched in a node.
type searched struct {
	cluster.Cluster
	texts []string
}

func (s *searched) SearchAuditLog(_ context.Context, mark string, texts []string) (io.ReadCloser, error) {
	s.texts = append(texts, mark)
	return io.NopCloser(strings.NewReader(log)), nil
}

func TestALogInANodeIsSearchedThere(t *testing.T) {
	s := &searched{}
	if _, err := open(t.Context(), s, "mark", []Filter{Writes(), InNamespace("a"), By(operatorUser)}); err != nil {
		t.Fatal(err)
	}
	if want := []string{`"namespace":"a"`, `"username":"` + operatorUser + `"`, "mark"}; !slices.Equal(s.texts, want) {
		t.Errorf("got %q, want %q", s.texts, want)
	}
}

func TestPermissions(t *testing.T) {
	events := read(t, "", Writes(), Budgeted())
	permissions := []string{"create events.k8s.io/events", "delete /services", "patch apps/deployments", "patch my.domain/lolcows/status"}
	if got := Permissions(events); !slices.Equal(got, permissions) {
		t.Errorf("got %q, want %q", got, permissions)
	}
}
