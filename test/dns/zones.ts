/** The number of addresses of one name: more than fit into a datagram. */
export const MANY_ADDRESSES = 199;

const many = Array.from(
  { length: MANY_ADDRESSES },
  (_, at) => `many AAAA 2001:db8:9::${at.toString(16)}`,
);

/** All other punctuation, escaped by number because zone files do not accept all of it as it is. */
const everyOtherCharacter = [..."!#%&'*+,/:<=>?[]^_`{|}~"]
  .map((character) => `\\${String(character.charCodeAt(0)).padStart(3, "0")}`)
  .join("");

/** Zones with the hard cases, in the format of knotd. */
export const ZONES = {
  "hard.example": `
$ORIGIN hard.example.
$TTL 300
@        SOA   NS1.Hard.Example. first\\.last.Example.COM. 4294967295 7200 3600 1209600 4294967295
@        NS    ns1
@        NS    NS2.Elsewhere.Example.
@        MX    10 mail
@        MX    65535 \\064\\036\\040weird\\041.Mail
@        A     192.0.2.1
@        AAAA  2001:db8::1
@        TXT   "v=spf1 -all"
ns1      AAAA  2001:db8::53
plain    AAAA  2001:db8::1
         AAAA  2001:DB8:0:0:1:0:0:1
         AAAA  ::ffff:192.0.2.1
         AAAA  ::
         AAAA  64:ff9b::192.0.2.1
         A     0.0.0.0
         A     255.255.255.255
compat   AAAA  ::192.0.2.1
zero  0  A     192.0.2.9
long  2147483647 A 192.0.2.9
nullmx   MX    0 .
rootptr  PTR   .
dot\\.ted AAAA 2001:db8::2
dot\\.ted TXT  "owner with a dot"
sp\\032ace  AAAA 2001:db8::3
\\200\\255\\000high AAAA 2001:db8::4
quo\\"te\\\\back\\;semi AAAA 2001:db8::5
MiXeD    CNAME TaRgEt.MiXeD2
target.mixed2 AAAA 2001:db8::6
names    PTR   do\\.t.example.
         PTR   sp\\ ace\\009tab.example.
         PTR   \\127\\128\\255.example.
         PTR   qu\\"o\\\\te\\;.example.
         PTR   p\\(ar\\)en.example.
         PTR   at\\@dollar\\$star*.example.
         PTR   MiXeD.CaSe.example.
         PTR   *.example.
         PTR   ${everyOtherCharacter}.example.
texts    TXT   "one"
         TXT   "several" "strings" "of one record"
         TXT   ""
         TXT   "" "among" "" "others" ""
         TXT   "quote \\" backslash \\\\ semicolon ; at @ dollar $"
         TXT   "tab\\009 nul\\000 del\\127 high\\128\\255 tilde~"
         TXT   "\\195\\169\\226\\130\\172"
         TXT   "   spaces   "
         TXT   "${"x".repeat(255)}" "${"y".repeat(255)}"
soa.sub  CNAME @
*.wild   AAAA  2001:db8::7
*.wild   TXT   "from the wildcard"
*.wildcname CNAME plain
a.b.ent  AAAA  2001:db8::8
one      CNAME two
two      CNAME three
three    CNAME four.Sub
four.sub CNAME plain
nowhere  CNAME missing
out      CNAME www.elsewhere.example.
loop1    CNAME loop2
loop2    CNAME loop1
self     CNAME self
tree     DNAME sub
deleg    NS    ns.deleg
ns.deleg AAAA  2001:db8::53
ptr      PTR   Host.Name.example.
         PTR   .
${many.join("\n")}
`,
  "8.b.d.0.1.0.0.2.ip6.arpa": `
$ORIGIN 8.b.d.0.1.0.0.2.ip6.arpa.
$TTL 60
@ SOA ns.example. hostmaster.example. 1 2 3 4 5
@ NS ns.example.
${"1".padEnd(47, ".0").slice(0, 47)} PTR Host-1.Example.
`,
  "2.0.192.in-addr.arpa": `
$ORIGIN 2.0.192.in-addr.arpa.
$TTL 60
@ SOA ns.example. hostmaster.example. 1 2 3 4 5
@ NS ns.example.
1 CNAME 1.0/25
1.0/25 PTR host-1.example.
`,
} as const;
